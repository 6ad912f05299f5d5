package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

var content = bytes.Repeat([]byte("abcdefghijk"), 2_000_000/11+1)[:2_000_000]

// application is what the tests ask for.
func application() *http.ServeMux {
	var cancelled atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Method, version(r.ProtoMajor))
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content)
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(content)
	})
	mux.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err == nil {
			fmt.Fprintf(w, "%x", sum.Sum(nil))
		}
	})
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/fields", func(w http.ResponseWriter, r *http.Request) {
		for _, value := range r.Header.Values("X-Asked") {
			w.Header().Add("X-Answered", value)
		}
		fmt.Fprint(w, r.Header.Get("Cookie"))
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum, X-Got")
		_, _ = io.Copy(io.Discard, r.Body)
		// With a length, HTTP/1.1 behind a gateway has no place for trailers.
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, "summed")
		w.Header().Set("X-Sum", "42")
		w.Header().Set("X-Got", r.Trailer.Get("X-Sent"))
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		fmt.Fprint(w, "hinted")
	})
	mux.HandleFunc("/break", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(content[:100_000])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		cancelled.Add(1)
	})
	mux.HandleFunc("/cancelled", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, cancelled.Load())
	})
	return mux
}

// serveHTTP is the application on net/http: HTTP/1.1, h2c with prior knowledge and h2.
func serveHTTP() error {
	plain, secure, err := listen()
	if err != nil {
		return err
	}
	server := &http.Server{Handler: application(), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.ServeTLS(secure, *certFile, *keyFile) }()
	return server.Serve(plain)
}

func echo(w http.ResponseWriter, r *http.Request) {
	controller := http.NewResponseController(w)
	_ = controller.EnableFullDuplex() // HTTP/2 is so anyway.
	_ = controller.Flush()
	buffer := make([]byte, 32*1024)
	for {
		n, err := r.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			_ = controller.Flush()
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func version(major int) string {
	return "h" + strings.TrimSuffix(fmt.Sprint(major), ".0")
}
