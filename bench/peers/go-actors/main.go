// Goroutines and channels, measured as the programs of bench/actors are.
// usage: GOMAXPROCS=THREADS actors MEASUREMENT NUMBER...; main lists the measurements.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Messages that may wait for one receiver, as for one actor.
const mailbox = 1024

type ask struct {
	n     int
	reply chan int
}

func resident() int {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "VmRSS:") {
			kb, _ := strconv.Atoi(strings.Fields(line)[1])
			return kb * 1024
		}
	}
	panic("no VmRSS in /proc/self/status")
}

func rate(n int, start time.Time) {
	fmt.Printf("per_s %.0f\n", float64(n)/time.Since(start).Seconds())
}

func percentiles(all []int) {
	sort.Ints(all)
	fmt.Printf("p50_us %d\np99_us %d\nmax_us %d\n", all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
}

func adder() chan ask {
	to := make(chan ask, mailbox)
	go func() {
		total := 0
		for a := range to {
			total += a.n
			a.reply <- total
		}
	}()
	return to
}

func callOnce(to chan ask, n int) int {
	reply := make(chan int, 1)
	to <- ask{n, reply}
	return <-reply
}

func call(n int) {
	to := adder()
	start := time.Now()
	for range n {
		callOnce(to, 1)
	}
	rate(n, start)
	took := make([]int, n)
	for i := range took {
		start := time.Now()
		callOnce(to, 1)
		took[i] = int(time.Since(start).Microseconds())
	}
	percentiles(took)
}

// `senders` to one, or one to `sinks`.
func oneway(n, senders, sinks int) {
	n = n / (senders * sinks) * senders * sinks
	var end sync.WaitGroup
	end.Add(sinks)
	to := make([]chan int, sinks)
	sums := make([]int, sinks)
	for k := range to {
		to[k] = make(chan int, mailbox)
		go func() {
			for range n / sinks {
				sums[k] += <-to[k]
			}
			end.Done()
		}()
	}
	start := time.Now()
	for range senders {
		go func() {
			for i := range n / senders {
				to[i%sinks] <- i
			}
		}()
	}
	end.Wait()
	rate(n, start)
}

func texts(n int) {
	to := make(chan *[10]string, mailbox)
	done := make(chan int)
	go func() {
		sum := 0
		for range n {
			m := <-to
			sum += len(m[0]) + len(m[9])
		}
		done <- sum
	}()
	start := time.Now()
	go func() {
		for i := range n {
			letter := new([10]string)
			for k := range letter {
				letter[k] = string(rune('a'+k)) + strconv.Itoa(i)
			}
			to <- letter
		}
	}()
	<-done
	rate(n, start)
}

func spawn(form string, n, rounds int) {
	for range rounds {
		runtime.GC()
		var handled sync.WaitGroup
		handled.Add(n)
		kept := make([]chan int, 0, n)
		start := time.Now()
		for range n {
			to := make(chan int, 1)
			go func() {
				for range to {
					handled.Done()
				}
			}()
			if form != "only" {
				to <- 1
			}
			if form == "gone" {
				close(to)
			} else {
				kept = append(kept, to)
			}
		}
		if form != "only" {
			handled.Wait()
		}
		rate(n, start)
		for _, to := range kept {
			close(to)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func memory(n int) {
	runtime.GC()
	before := resident()
	var handled sync.WaitGroup
	handled.Add(n)
	kept := make([]chan int, n)
	for i := range kept {
		to := make(chan int, 1)
		kept[i] = to
		go func() {
			for range to {
				handled.Done()
			}
		}()
		to <- 1
	}
	handled.Wait()
	time.Sleep(300 * time.Millisecond)
	fmt.Printf("bytes %.1f\n", float64(resident()-before)/float64(n))
	runtime.KeepAlive(kept)
}

func deep(frames int, stop chan int) int {
	if frames > 1 {
		return deep(frames-1, stop) + 1
	}
	<-stop
	return 1
}

func parked(n, frames int) {
	runtime.GC()
	before := resident()
	stop := make(chan int)
	for range n {
		if frames > 0 {
			go deep(frames, stop)
		} else {
			go time.Sleep(time.Hour)
		}
	}
	time.Sleep(300 * time.Millisecond)
	fmt.Printf("bytes %.1f\n", float64(resident()-before)/float64(n))
}

func turns(fibers, turns int) {
	at := time.Now().Add(500 * time.Millisecond)
	starts, ends := make([]time.Time, fibers), make([]time.Time, fibers)
	var done sync.WaitGroup
	done.Add(fibers)
	for k := range fibers {
		go func() {
			time.Sleep(time.Until(at))
			starts[k] = time.Now()
			for range turns {
				runtime.Gosched()
			}
			ends[k] = time.Now()
			done.Done()
		}()
	}
	done.Wait()
	first, last := starts[0], ends[0]
	for k := range fibers {
		if starts[k].Before(first) {
			first = starts[k]
		}
		if ends[k].After(last) {
			last = ends[k]
		}
	}
	fmt.Printf("ns %.1f\n", float64(last.Sub(first).Nanoseconds())/float64(fibers*turns))
}

func timers(n, ms int, halfBusy bool) {
	late := make(chan int, n)
	end := time.Now().Add(time.Duration(ms+1000) * time.Millisecond)
	if halfBusy {
		go func() {
			for time.Now().Before(end) {
				stop := time.Now().Add(time.Millisecond)
				for time.Now().Before(stop) {
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	for i := range n {
		delay := time.Duration(100+i*7919%n*ms/n) * time.Millisecond
		due := time.Now().Add(delay)
		time.AfterFunc(delay, func() { late <- int(time.Since(due).Microseconds()) })
	}
	all := make([]int, n)
	for i := range all {
		all[i] = <-late
	}
	percentiles(all)
}

func crowd(n, calls int) {
	to := adder()
	start := time.Now()
	due := start.Add(3 * time.Second)
	var asleep, woken sync.WaitGroup
	asleep.Add(n)
	woken.Add(n)
	for range n {
		go func() {
			asleep.Done()
			time.Sleep(time.Until(due))
			woken.Done()
		}()
	}
	asleep.Wait()
	fmt.Printf("park_ms %.1f\n", time.Since(start).Seconds()*1000)
	start = time.Now()
	for range calls {
		callOnce(to, 1)
	}
	fmt.Printf("calls_per_s %.0f\n", float64(calls)/time.Since(start).Seconds())
	woken.Wait()
	fmt.Printf("wake_ms %.1f\n", time.Since(due).Seconds()*1000)
}

func echo() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer conn.Close()
			buffer := make([]byte, 4096)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					return
				}
				if _, err := conn.Write(buffer[:n]); err != nil {
					return
				}
			}
		}()
	}
}

func main() {
	var n []int
	for _, arg := range os.Args[2:] {
		number, err := strconv.Atoi(arg)
		if err != nil {
			panic(err)
		}
		n = append(n, number)
	}
	threads := runtime.GOMAXPROCS(0)
	switch form := os.Args[1]; form {
	case "call":
		call(n[0])
	case "one":
		oneway(n[0], 1, 1)
	case "in":
		oneway(n[0], threads, 1)
	case "out":
		oneway(n[0], 1, threads)
	case "texts":
		texts(n[0])
	case "only", "idle", "gone":
		spawn(form, n[0], n[1])
	case "memory":
		memory(n[0])
	case "parked":
		parked(n[0], 0)
	case "parked20":
		parked(n[0], 20)
	case "switch":
		turns(n[0], n[1])
	case "timers":
		timers(n[0], n[1], false)
	case "timers-half":
		timers(n[0], n[1], true)
	case "crowd":
		crowd(n[0], n[1])
	case "echo":
		echo()
	default:
		panic("no such measurement: " + form)
	}
}
