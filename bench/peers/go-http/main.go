// net/http peer of bench/http, standard library only, one thread. usage: go-http PORT FILE
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
)

type hello struct {
	Hello string `json:"hello"`
}

func main() {
	runtime.GOMAXPROCS(1)
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go-http PORT FILE")
		os.Exit(2)
	}
	big, err := os.ReadFile(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m := http.NewServeMux()
	m.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		body, err := json.Marshal(hello{r.PathValue("name")})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	})
	m.HandleFunc("GET /big", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(big)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+os.Args[1], m))
	os.Exit(1)
}
