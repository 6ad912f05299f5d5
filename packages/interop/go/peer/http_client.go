package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// Asked is a request to make.
type Asked struct {
	ID       int
	Method   string
	Path     string
	Headers  [][2]string
	Content  []byte
	Has      bool
	Streamed bool
	Trailers [][2]string
	// AbortAfter is how many octets of the answer are read before it is broken off; less than 0: all.
	AbortAfter int
	// AbortIn is when to give up waiting for the answer, ms; 0: never.
	AbortIn int
	// Do is what a client of HTTP/3 does instead of a request.
	Do string
}

// Answer is what came.
type Answer struct {
	ID            int
	Error         string
	Version       string
	Status        int
	Headers       [][2]string
	Content       []byte
	Trailers      [][2]string
	Informational []string
	// Resumed tells whether the TLS session is one of before.
	Resumed bool
}

func askHTTP() error {
	transport, err := transport()
	if err != nil {
		return err
	}
	scheme := "http"
	if *way == "https" || *way == "h2" || *way == "h3" {
		scheme = "https"
	}
	return orders(func(asked Asked) Answer {
		if asked.Do != "" {
			done, err := transport.(*quicClient).do(asked.Do, asked.Content)
			return Answer{ID: asked.ID, Error: said(err), Content: []byte(done)}
		}
		answer, err := ask(transport, scheme+"://"+*address, asked)
		answer.ID = asked.ID
		answer.Error = said(err)
		return answer
	})
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func transport() (http.RoundTripper, error) {
	if *way == "xh2c" {
		return &http2.Transport{
			AllowHTTP: true,
			DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		}, nil
	}
	if *way == "h3" {
		return newQUICClient()
	}
	made := &http.Transport{
		Protocols:             new(http.Protocols),
		ExpectContinueTimeout: 10 * time.Second,
		DisableCompression:    true,
		MaxIdleConnsPerHost:   100,
	}
	switch *way {
	case "h1", "https":
		made.Protocols.SetHTTP1(true)
	case "h2c":
		made.Protocols.SetUnencryptedHTTP2(true)
	case "h2":
		made.Protocols.SetHTTP2(true)
	default:
		return nil, fmt.Errorf("no way %q", *way)
	}
	if *caFile != "" {
		var err error
		if made.TLSClientConfig, err = trusted(); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func ask(transport http.RoundTripper, base string, asked Asked) (answer Answer, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if asked.AbortIn > 0 {
		time.AfterFunc(time.Duration(asked.AbortIn)*time.Millisecond, cancel)
	}
	var listening sync.Mutex
	var informational []string
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			listening.Lock()
			defer listening.Unlock()
			informational = append(informational, strings.TrimSpace(fmt.Sprint(code, " ", header.Get("Link"))))
			return nil
		},
	})
	request, err := http.NewRequestWithContext(ctx, asked.Method, base+asked.Path, body(asked))
	if err != nil {
		return answer, err
	}
	if asked.Streamed || asked.Trailers != nil {
		request.ContentLength = -1
	}
	for _, field := range asked.Headers {
		request.Header.Add(field[0], field[1])
	}
	if asked.Trailers != nil {
		request.Trailer = http.Header{}
		for _, field := range asked.Trailers {
			request.Trailer.Add(field[0], field[1])
		}
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	answer.Version = version(response.ProtoMajor)
	answer.Status = response.StatusCode
	answer.Headers = fields(response.Header)
	answer.Resumed = response.TLS != nil && response.TLS.DidResume
	if asked.AbortAfter >= 0 {
		_, err = io.CopyN(io.Discard, response.Body, int64(asked.AbortAfter))
		return answer, err
	}
	answer.Content, err = io.ReadAll(response.Body)
	answer.Trailers = fields(response.Trailer)
	listening.Lock()
	defer listening.Unlock()
	answer.Informational = informational
	return answer, err
}

// body has a length that is known only to a request that is not streamed.
func body(asked Asked) io.Reader {
	if !asked.Has {
		return nil
	}
	if asked.Streamed || asked.Trailers != nil {
		return io.MultiReader(bytes.NewReader(asked.Content))
	}
	return bytes.NewReader(asked.Content)
}

func fields(header http.Header) [][2]string {
	all := [][2]string{}
	for name, values := range header {
		for _, value := range values {
			all = append(all, [2]string{strings.ToLower(name), value})
		}
	}
	return all
}
