package main

import "testing"

func TestPiecesHaveTheDigestOfTheWholeAndOfTheOtherPrograms(t *testing.T) {
	bytes := make([]byte, 1000)
	for n := range bytes {
		bytes[n] = byte(n)
	}
	for _, length := range []int{1, 7, 64, 65, 1000} {
		var sum digest
		for n := 0; n < len(bytes); n += length {
			sum.update(bytes[n:min(n+length, len(bytes))])
		}
		// The same number stands in digest.rs.
		if sum.value() != 0x949486ede81c6590 {
			t.Errorf("pieces of %d bytes: %#x", length, sum.value())
		}
	}
}
