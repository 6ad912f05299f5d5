// The contestant of HTTP/3: quic-go's server with the same answer. Prints "ready PORT".
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func main() {
	size, _ := strconv.Atoi(os.Args[1])
	content := []byte("hello, world")
	if size != len(content) {
		content = bytes.Repeat([]byte("x"), size)
	}
	certificate, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
	if err != nil {
		panic(err)
	}
	port, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		panic(err)
	}
	server := &http3.Server{
		TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}}),
		QUICConfig: &quic.Config{MaxIncomingStreams: 1000},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("content-type", "text/plain")
			w.Header().Set("content-length", strconv.Itoa(len(content)))
			w.Write(content)
		}),
	}
	fmt.Printf("ready %d\n", port.LocalAddr().(*net.UDPAddr).Port)
	panic(server.Serve(port))
}
