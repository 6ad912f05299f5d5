// The Go contestant: net/http with the same answer, h2c or TLS. Prints "ready PORT".
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
)

func main() {
	size, _ := strconv.Atoi(os.Args[1])
	content := []byte("hello, world")
	if size != len(content) {
		content = bytes.Repeat([]byte("x"), size)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/plain")
		w.Header().Set("content-length", strconv.Itoa(len(content)))
		w.Write(content)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000}}
	fmt.Printf("ready %d\n", listener.Addr().(*net.TCPAddr).Port)
	if len(os.Args) > 3 {
		certificate, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
		if err != nil {
			panic(err)
		}
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
		panic(server.ServeTLS(listener, "", ""))
	}
	panic(server.Serve(listener))
}
