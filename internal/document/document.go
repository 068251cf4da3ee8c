// Package document reads TOML that people write, or send: settings, plans, rules, profiles of devices. Its bounds hold for what
// the parser itself finds in a text, before values are made of it.
package document

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

const (
	// nestingMax bounds lists and tables within one another, and the parts of a key.
	nestingMax = 16
	// valueBytes is about what a value takes, whatever it is read into.
	valueBytes = 128
	// valuesMax bounds what all values take.
	valuesMax = 128 << 20
	// pathsMax bounds the different keys of a text: the parser compares each with those of its table.
	pathsMax = 8192
)

// Error is an error in a line of a text.
type Error struct {
	Line int
	Text string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// Key is a key of a text, with the tables that it is in, where it stands first.
type Key struct {
	Parts []string
	Line  int
}

// UnknownKey is a key that the value has no place for.
type UnknownKey struct{ Key string }

// Error implements error.
func (e *UnknownKey) Error() string { return "unknown key " + units.Clean(strconv.Quote(e.Key)) }

// DecodeTOML reads a text into a map[string]any or a struct. Errors are an *Error, or an *UnknownKey. It returns the keys of up
// to two parts, in the order of the text; headings of tables count as keys.
func DecodeTOML(text string, into any) ([]Key, error) {
	b := bytes.TrimPrefix([]byte(text), []byte("\ufeff"))
	d := &decoder{text: b, into: reflect.TypeOf(into), paths: map[uint64]bool{}, seed: maphash.MakeSeed(), keep: budget.New(valuesMax), line: 1}
	if err := d.checkBounds(); err != nil {
		return nil, err
	}
	toRead := toml.NewDecoder(bytes.NewReader(b))
	if d.unknown == nil {
		toRead.DisallowUnknownFields() // it describes each unknown key with the whole text, and so must not find many
	}
	err := d.translateError(toRead.Decode(into))
	if err == nil && d.unknown != nil {
		err = d.unknown
	}
	return d.keys, err
}

// decoder looks through a text.
type decoder struct {
	text    []byte
	into    reflect.Type
	paths   map[uint64]bool // hashes of different keys with the tables that they are in
	seed    maphash.Seed    // of these hashes
	unknown error           // the first *UnknownKey; nil: none was found
	keep    *budget.Budget
	keys    []Key
	table   []string
	line    int // of offset
	offset  int
}

// checkBounds goes through the expressions of the text and refuses what is nested too deeply, or is too much.
func (d *decoder) checkBounds() error {
	var p unstable.Parser
	p.Reset(d.text)
	for p.NextExpression() {
		e := p.Expression()
		parts, at := d.keyParts(e.Key())
		d.setLineOfOffset(at)
		fits := len(parts) <= nestingMax && d.keep.Charge(valueBytes*int64(len(parts)))
		if e.Kind == unstable.KeyValue {
			parts = append(d.table[:len(d.table):len(d.table)], parts...)
			fits = fits && d.isValueWithinBounds(parts, e.Value(), 0)
		} else {
			d.table = parts
		}
		d.noteKeyAndTables(parts)
		line := d.line
		switch {
		case len(d.paths) > pathsMax:
			return &Error{line, fmt.Sprintf("too many different keys: want at most %d", pathsMax)}
		case d.keep.RefusedCount() > 0:
			return &Error{line, fmt.Sprintf("too many values: want at most %d", valuesMax/valueBytes)}
		case !fits:
			return &Error{line, fmt.Sprintf("nested too deeply: want at most %d brackets or dots", nestingMax)}
		case len(parts) <= 2:
			d.keys = append(d.keys, Key{parts, line})
		}
		if e.Kind == unstable.KeyValue && len(parts) == 1 && e.Value().Kind == unstable.InlineTable {
			d.noteInlineTable(parts[0], e.Value().Children())
		}
	}
	var bad *unstable.ParserError
	if err := p.Error(); errors.As(err, &bad) {
		d.setLineOfOffset(len(d.text))
		if len(bad.Highlight) > 0 {
			d.line, d.offset = 1, 0
			d.setLineOfOffset(int(p.Range(bad.Highlight).Offset))
		}
		return &Error{d.line, units.Clean(bad.Message)}
	}
	return nil
}

// noteInlineTable notes the keys of a table in one line.
func (d *decoder) noteInlineTable(name string, children unstable.Iterator) {
	for children.Next() {
		parts, at := d.keyParts(children.Node().Key())
		if d.setLineOfOffset(at); len(parts) == 1 {
			d.keys = append(d.keys, Key{[]string{name, parts[0]}, d.line})
		}
	}
}

// keyParts returns the parts of a key, and where the key begins.
func (d *decoder) keyParts(parts unstable.Iterator) (names []string, at int) {
	at = d.offset
	for parts.Next() {
		if len(names) == 0 {
			at = int(parts.Node().Raw.Offset)
		}
		if names = append(names, string(parts.Node().Data)); len(names) > nestingMax {
			break
		}
	}
	return names, at
}

// noteKeyAndTables notes a key with the tables that it is in, and whether the value that is read into has a place for it.
func (d *decoder) noteKeyAndTables(parts []string) {
	var hash maphash.Hash
	hash.SetSeed(d.seed)
	for _, part := range parts {
		maphash.WriteComparable(&hash, part)
	}
	path := hash.Sum64()
	if d.paths[path] || len(d.paths) > pathsMax {
		return
	}
	d.paths[path] = true
	t := d.into
	for _, part := range parts {
		if t = typeOfKey(t, part); t == nil && d.unknown == nil {
			d.unknown = &UnknownKey{strings.Join(parts, ".")}
		}
		if t == nil {
			return
		}
	}
}

// typeOfKey returns the type that a key has in a value of a type; nil: the type has no such key. What is neither a struct nor
// a map is left to the parser, as is the case of letters.
func typeOfKey(t reflect.Type, key string) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
			if strings.EqualFold(cmp.Or(name, f.Name), key) {
				return f.Type
			}
		}
		return nil
	default:
		return t
	}
}

// isValueWithinBounds reports whether the value of a key, and those in it, are in bounds.
func (d *decoder) isValueWithinBounds(key []string, v *unstable.Node, depth int) bool {
	if !d.keep.Charge(valueBytes) || depth == nestingMax && (v.Kind == unstable.Array || v.Kind == unstable.InlineTable) {
		return false
	}
	children := v.Children()
	switch v.Kind {
	case unstable.Array:
		for children.Next() {
			if !d.isValueWithinBounds(key, children.Node(), depth+1) {
				return false
			}
		}
	case unstable.InlineTable:
		for children.Next() {
			names, _ := d.keyParts(children.Node().Key())
			path := append(key[:len(key):len(key)], names...)
			if len(names) > nestingMax || !d.keep.Charge(valueBytes*int64(len(names))) || !d.isValueWithinBounds(path, children.Node().Value(), depth+1) {
				return false
			}
			d.noteKeyAndTables(path)
		}
	default:
	}
	return true
}

// setLineOfOffset sets the line of an offset, which is not before the last one.
func (d *decoder) setLineOfOffset(offset int) {
	offset = max(d.offset, min(offset, len(d.text)))
	d.line += bytes.Count(d.text[d.offset:offset], []byte("\n"))
	d.offset = offset
}

// translateError turns the decoder's errors into ours.
func (d *decoder) translateError(err error) error {
	var unknown *toml.StrictMissingError
	var bad *toml.DecodeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown) && len(unknown.Errors) > 0:
		return &UnknownKey{strings.Join(unknown.Errors[0].Key(), ".")}
	case errors.As(err, &bad):
		line, _ := bad.Position()
		return &Error{line, units.Clean(strings.TrimPrefix(bad.Error(), "toml: "))}
	}
	return &Error{1, units.Clean(strings.TrimPrefix(err.Error(), "toml: "))}
}
