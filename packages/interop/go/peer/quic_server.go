package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// serveQUIC is the same application on quic-go's HTTP/3, with what only the tests of HTTP/3 ask for. It prints
// "quic PORT" and stops gracefully when its standard input ends.
func serveQUIC() error {
	certificate, err := identity()
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	transport := &quic.Transport{
		Conn:                socket,
		StatelessResetKey:   new(quic.StatelessResetKey),
		VerifySourceAddress: func(net.Addr) bool { return *retry },
		ConnectionIDLength:  *idLength,
	}
	config := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}})
	listener, err := transport.ListenEarly(config, &quic.Config{
		MaxIdleTimeout:             *idle,
		MaxIncomingStreams:         200,
		InitialStreamReceiveWindow: 64 * 1024, // Windows must grow.
		Allow0RTT:                  true,
	})
	if err != nil {
		return err
	}
	mux := application()
	server := &http3.Server{Handler: mux, MaxHeaderBytes: 256 * 1024}
	mux.HandleFunc("/quic/", func(w http.ResponseWriter, r *http.Request) {
		what, argument, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/quic/"), "/")
		switch what {
		case "sized":
			size, _ := strconv.Atoi(argument)
			w.Header().Set("Content-Length", argument)
			for ; size > len(content); size -= len(content) {
				_, _ = w.Write(content)
			}
			_, _ = w.Write(content[:size])
		case "not-modified":
			w.Header().Set("Etag", `"one"`)
			w.WriteHeader(http.StatusNotModified)
		case "resumed":
			fmt.Fprint(w, r.TLS.DidResume)
		case "address":
			fmt.Fprint(w, r.RemoteAddr)
		case "suite":
			fmt.Fprint(w, tls.CipherSuiteName(r.TLS.CipherSuite))
		case "later":
			time.Sleep(300 * time.Millisecond)
			fmt.Fprint(w, "later")
		case "tunnel":
			// An extended CONNECT; what comes goes back.
			if r.Method != http.MethodConnect || r.Proto != "websocket" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusOK)
			stream, err := w.(http3.HTTPStreamer).HTTPStream()
			if err != nil {
				return
			}
			_, _ = io.Copy(stream, stream)
			_ = stream.Close()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		shutdown, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		fmt.Println("stopped", server.Shutdown(shutdown))
		_ = listener.Close()
		_ = transport.Close()
		os.Exit(0)
	}()
	fmt.Printf("quic %d\n", socket.LocalAddr().(*net.UDPAddr).Port)
	err = server.ServeListener(listener)
	if err == http.ErrServerClosed {
		select {}
	}
	return err
}
