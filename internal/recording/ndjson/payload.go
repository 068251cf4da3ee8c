package ndjson

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// payload is what a record's payload is written as: one of these.
type payload struct {
	Arguments []string `json:"arguments,omitempty"` // PROCESS: the program and its arguments
	Device    *device  `json:"device,omitempty"`    // DEVICE
	Frames    []frame  `json:"frames,omitempty"`    // TAG
	Site      []line   `json:"site,omitempty"`      // SITE
	Text      *string  `json:"text,omitempty"`      // anything else that is text
	Base64    *string  `json:"base64,omitempty"`    // anything else
}

type device struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// Identity has its PCI address or UUID.
	Identity string `json:"identity,omitempty"`
}

type frame struct {
	Module uint64 `json:"module"`
	Offset uint64 `json:"offset"`
}

// line is a line of a SITE.
type line struct {
	Function string  `json:"function,omitempty"`
	File     string  `json:"file,omitempty"`
	Line     uint64  `json:"line,omitempty"`
	Module   string  `json:"module,omitempty"`
	Offset   *uint64 `json:"offset,omitempty"`
}

// appendPayload writes a payload as a structure if that says exactly the same, or as text, or as base64.
func appendPayload(b []byte, r *wire.Record) []byte {
	p := parsePayload(r)
	if p == nil || !bytes.Equal(p.encodePayload(), r.Payload) {
		if text := string(r.Payload); utf8.ValidString(text) {
			p = &payload{Text: &text}
		} else {
			text = base64.StdEncoding.EncodeToString(r.Payload)
			p = &payload{Base64: &text}
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(p) != nil {
		return b // strings and numbers can always be written
	}
	object := bytes.TrimSuffix(out.Bytes(), []byte("}\n"))
	return append(append(b, ','), object[1:]...)
}

// parsePayload returns what a payload consists of, nil when it is none of what its kind has.
func parsePayload(r *wire.Record) *payload {
	if r.Kind == wire.KindTag {
		return parseFrames(r.Payload)
	}
	text := string(r.Payload)
	if !utf8.ValidString(text) {
		return nil
	}
	switch r.Kind {
	case wire.KindProcess:
		return &payload{Arguments: strings.Split(text, "\x00")}
	case wire.KindDevice:
		parts := append(strings.SplitN(text, "\x00", 3), "", "")
		return &payload{Device: &device{parts[0], parts[1], parts[2]}}
	case wire.KindSite:
		p := &payload{}
		for text := range strings.Lines(text) {
			p.Site = append(p.Site, parseFrameLine(strings.TrimSuffix(text, "\n")))
		}
		return p
	default:
		return nil
	}
}

func parseFrames(b []byte) *payload {
	if len(b)%wire.SizeofFrame != 0 {
		return nil
	}
	p := &payload{}
	for ; len(b) > 0; b = b[wire.SizeofFrame:] {
		p.Frames = append(p.Frames, frame{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])})
	}
	return p
}

// parseFrameLine reads "function TAB file TAB line TAB module+0xoffset".
func parseFrameLine(text string) line {
	fields := strings.SplitN(text, "\t", 4)
	for len(fields) < 4 {
		fields = append(fields, "")
	}
	l := line{Function: fields[0], File: fields[1], Module: fields[3]}
	l.Line, _ = strconv.ParseUint(fields[2], 10, 64)
	if at := strings.LastIndex(l.Module, "+0x"); at >= 0 {
		if offset, err := strconv.ParseUint(l.Module[at+3:], 16, 64); err == nil {
			l.Module, l.Offset = l.Module[:at], &offset
		}
	}
	return l
}

// encodePayload returns the payload, nil when there is none.
func (p *payload) encodePayload() []byte {
	switch {
	case p.Arguments != nil:
		return []byte(strings.Join(p.Arguments, "\x00"))
	case p.Device != nil:
		text := p.Device.Name + "\x00" + p.Device.Driver
		if p.Device.Identity != "" {
			text += "\x00" + p.Device.Identity
		}
		return []byte(text)
	case p.Frames != nil:
		var b []byte
		for _, f := range p.Frames {
			b = binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(b, f.Module), f.Offset)
		}
		return b
	case p.Site != nil:
		var b strings.Builder
		for i := range p.Site {
			b.WriteString(p.Site[i].lineText())
		}
		return []byte(b.String())
	case p.Text != nil:
		return []byte(*p.Text)
	}
	return nil
}

func (l *line) lineText() string {
	number := ""
	if l.Line > 0 {
		number = strconv.FormatUint(l.Line, 10)
	}
	place := l.Module
	if l.Offset != nil {
		place += "+0x" + strconv.FormatUint(*l.Offset, 16)
	}
	return l.Function + "\t" + l.File + "\t" + number + "\t" + place + "\n"
}

// readPayload returns the payload that a line gives a record of a kind.
func (p *payload) readPayload(kind wire.Kind) ([]byte, error) {
	given := 0
	for _, is := range []bool{p.Arguments != nil, p.Device != nil, p.Frames != nil, p.Site != nil, p.Text != nil, p.Base64 != nil} {
		if is {
			given++
		}
	}
	b := p.encodePayload()
	if p.Base64 != nil {
		var err error
		if b, err = base64.StdEncoding.DecodeString(*p.Base64); err != nil {
			return nil, fmt.Errorf("base64: %w", err)
		}
	}
	switch {
	case given > 1:
		return nil, fmt.Errorf("%d of arguments, device, frames, site, text and base64: want one", given)
	case given > 0 && !kind.HasPayload():
		return nil, fmt.Errorf("a record of kind %s has no text", kind)
	case len(b) > wire.PayloadMax:
		return nil, fmt.Errorf("%d bytes of text: want at most %d", len(b), wire.PayloadMax)
	}
	return b, nil
}

// words are the values of an enum by their words.
type words struct {
	of map[string]uint64
	// to returns the word of a value, false when there is none.
	to func(uint64) (string, bool)
}

// wordsMax bounds the values of an enum.
const wordsMax = 64

// wordsOfEnum lists an enum: a value without a word shows as its number.
func wordsOfEnum(word func(uint64) string) *words {
	w := &words{of: map[string]uint64{}}
	var list [wordsMax]string
	for v := range uint64(wordsMax) {
		if text := word(v); text[0] < '0' || text[0] > '9' {
			list[v] = text
			w.of[text] = v
		}
	}
	w.to = func(v uint64) (string, bool) {
		if v < wordsMax && list[v] != "" {
			return list[v], true
		}
		return "", false
	}
	return w
}

// vocabulary has the words for the numbers of events.
type vocabulary struct {
	kinds, outcomes *words
	ops, reasons    map[wire.Kind]*words
}

// spoken is made when it is needed: every run would wait for it.
var spoken = sync.OnceValue(func() *vocabulary {
	lives := wordsOfEnum(func(v uint64) string { return wire.Life(v).String() })
	return &vocabulary{
		kinds:    wordsOfEnum(func(v uint64) string { return wire.Kind(v).String() }),
		outcomes: wordsOfEnum(func(v uint64) string { return wire.Outcome(v).String() }),
		ops: map[wire.Kind]*words{
			wire.KindCreate:  wordsOfEnum(func(v uint64) string { return wire.Memory(v).String() }),
			wire.KindUse:     wordsOfEnum(func(v uint64) string { return wire.Command(v).String() }),
			wire.KindSync:    wordsOfEnum(func(v uint64) string { return wire.Sync(v).String() }),
			wire.KindOrder:   wordsOfEnum(func(v uint64) string { return wire.Order(v).String() }),
			wire.KindAwait:   wordsOfEnum(func(v uint64) string { return wire.Await(v).String() }),
			wire.KindObject:  wordsOfEnum(func(v uint64) string { return wire.Held(v).String() }),
			wire.KindMachine: wordsOfEnum(func(v uint64) string { return wire.Machine(v).String() }),
			wire.KindSpill:   wordsOfEnum(func(v uint64) string { return wire.Spill(v).String() }),
			wire.KindContext: lives,
			wire.KindQueue:   lives,
			wire.KindTag:     wordsOfEnum(func(v uint64) string { return wire.TagMode(v).String() }),
			wire.KindDiag:    wordsOfEnum(func(v uint64) string { return wire.Diag(v).String() }),
		},
		reasons: map[wire.Kind]*words{
			wire.KindCreate: wordsOfEnum(func(v uint64) string { return wire.Miss(v).String() }),
			wire.KindEvict:  wordsOfEnum(func(v uint64) string { return wire.Evict(v).String() }),
		},
	}
})
