package main

import "fmt"

// message is a gRPC message as it is: what the tests say needs no schema.
type message struct{ octets []byte }

// rawCodec hands messages on. It has protobuf's name, which is what the other peers say they speak.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	if m, ok := v.(*message); ok {
		return m.octets, nil
	}
	return nil, fmt.Errorf("not a message: %T", v)
}

func (rawCodec) Unmarshal(octets []byte, v any) error {
	m, ok := v.(*message)
	if !ok {
		return fmt.Errorf("not a message: %T", v)
	}
	m.octets = append([]byte(nil), octets...)
	return nil
}
