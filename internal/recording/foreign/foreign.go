// Package foreign says what a file is that is no recording, by how it begins.
package foreign

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// headMax is how much of a file is looked at: logs may begin with lines of others.
	headMax = 64 << 10
	// packedMax bounds what is unpacked for that.
	packedMax = 1 << 20
)

// Kind is a kind of file.
type Kind struct {
	name   string // completes "it is"
	advice string // what can be done with it
	format string // in which it can be imported
	is     func(*head) bool
}

// KindOfFile finds the kind of a file, which it reads from the front as far as it must. An unknown one has the zero Kind.
func KindOfFile(r io.Reader) Kind {
	start, _ := io.ReadAll(io.LimitReader(r, headMax)) // what cannot be read is not looked at
	for _, p := range packers {
		if bytes.HasPrefix(start, []byte(p.magic)) {
			packed := io.LimitReader(io.MultiReader(bytes.NewReader(start), r), packedMax)
			return p.kindWhenPacked(findKind(parseHead(p.unpack(packed))))
		}
	}
	return findKind(parseHead(start))
}

func findKind(h *head) Kind {
	for i := range kinds {
		if kinds[i].is(h) {
			return kinds[i]
		}
	}
	return Kind{}
}

// String completes "it is", empty for an unknown one.
func (k Kind) String() string {
	if k.advice == "" {
		return k.name
	}
	return k.name + ": " + k.advice
}

// ImportFormat names the format in which the file can be imported, empty when it cannot.
func (k Kind) ImportFormat() string { return k.format }

// packer is a way to pack files.
type packer struct {
	magic, name, command string
	unpack               func(io.Reader) []byte
}

var packers = []packer{
	{"\x1f\x8b", "gzip", "gzip -d", func(r io.Reader) []byte {
		in, err := gzip.NewReader(r)
		if err != nil {
			return nil
		}
		text, _ := io.ReadAll(io.LimitReader(in, headMax)) // what is cut off is not looked at
		return text
	}},
	{"\x28\xb5\x2f\xfd", "zstd", "zstd -d", func(r io.Reader) []byte {
		in, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
		if err != nil {
			return nil
		}
		defer in.Close()
		text, _ := io.ReadAll(io.LimitReader(in, headMax)) // as above
		return text
	}},
}

// kindWhenPacked returns the kind of a file in which another one is packed. Tools read their own files packed, and import what gzip
// packed.
func (p *packer) kindWhenPacked(k Kind) Kind {
	switch {
	case k.name == "" || k.name == empty:
		return Kind{name: "a file packed by " + p.name, advice: p.command + " unpacks it"}
	case k.name == packedRecording || k.format != "" && p.name != "gzip":
		return Kind{name: fmt.Sprintf("%s, packed by %s", k.name, p.name), advice: p.command + " unpacks it"}
	}
	k.name += ", packed by " + p.name
	return k
}
