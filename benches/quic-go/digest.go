package main

import (
	"encoding/binary"
	"math/bits"
)

const (
	lanes = 8
	block = 8 * lanes
	mix   = 0x9e3779b97f4a7c15
)

// digest is the checksum that the other programs of the benchmark compute, too: digest.rs says what it sees.
type digest struct {
	sums, sumsOfSums [lanes]uint64
	partial          [block]byte
	partialLen       int
	len              uint64
}

func (d *digest) update(bytes []byte) {
	d.len += uint64(len(bytes))
	if d.partialLen > 0 {
		taken := copy(d.partial[d.partialLen:], bytes)
		d.partialLen += taken
		bytes = bytes[taken:]
		if d.partialLen < block {
			return
		}
		d.add(d.partial[:])
		d.partialLen = 0
	}
	for ; len(bytes) >= block; bytes = bytes[block:] {
		d.add(bytes[:block])
	}
	d.partialLen = copy(d.partial[:], bytes)
}

func (d *digest) value() uint64 {
	whole := *d
	clear(whole.partial[whole.partialLen:])
	whole.add(whole.partial[:])
	value := whole.len
	for _, sums := range [][lanes]uint64{whole.sums, whole.sumsOfSums} {
		for _, lane := range sums {
			value = bits.RotateLeft64((value^lane)*mix, 29)
		}
	}
	return value
}

func (d *digest) add(bytes []byte) {
	for lane := range lanes {
		d.sums[lane] += binary.LittleEndian.Uint64(bytes[8*lane:])
		d.sumsOfSums[lane] += d.sums[lane]
	}
}
