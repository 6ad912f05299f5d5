package main

import "strings"

// What src/websocket-messages.ts has, too.
var edges = []int{0, 1, 125, 126, 127, 65_535, 65_536, 65_537, 262_144, 400_000}

var words = []string{
	"heddle ", "thread", "über", "пряжа", "織物", "\u0000", "\u007f\u0080", "\u07ff\u0800", "\ud7ff\ue000\uffff", "🧵🪡", "\U00010000\U0010ffff",
}

// message makes the message of a number, always the same.
func message(index int) (isText bool, payload []byte) {
	random := &xorshift{uint32(index+1) * 0x9e3779b1}
	size := sizeOf(random, index)
	kind := uint32(2 * (index & 1))
	if index >= 2*len(edges) {
		kind = random.next() & 3
	}
	switch kind {
	case 0:
		return false, scattered(random, size)
	case 1:
		pattern := scattered(random, 61)
		payload = make([]byte, size)
		for i := range payload {
			payload[i] = pattern[i%61]
		}
		return false, payload
	}
	return true, text(random, size)
}

func sizeOf(random *xorshift, index int) int {
	if index < 2*len(edges) {
		return edges[index/2]
	}
	kind, some := random.next()%1000, int(random.next())
	switch {
	case kind < 600:
		return some % 126
	case kind < 900:
		return 126 + some%1900
	case kind < 985:
		return 2000 + some%18_000
	case kind < 998:
		return 20_000 + some%80_000
	}
	return 100_000 + some%300_000
}

func scattered(random *xorshift, size int) []byte {
	bytes := make([]byte, size)
	var four uint32
	for i := range bytes {
		if i&3 == 0 {
			four = random.next()
		} else {
			four >>= 8
		}
		bytes[i] = byte(four)
	}
	return bytes
}

func text(random *xorshift, size int) []byte {
	var made strings.Builder
	for {
		word := words[random.next()%uint32(len(words))]
		if left := size - made.Len(); len(word) > left {
			made.WriteString(strings.Repeat("x", left))
			return []byte(made.String())
		}
		made.WriteString(word)
	}
}

type xorshift struct{ state uint32 }

func (x *xorshift) next() uint32 {
	x.state ^= x.state << 13
	x.state ^= x.state >> 17
	x.state ^= x.state << 5
	return x.state
}
