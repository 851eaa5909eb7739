module actors

go 1.24
