package stack

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

func rowOf(initial, code []byte, pc uint64) *row {
	p := program{common: &common{code: 1, data: -8, ra: rip}}
	p.executeUntil(initial, 0)
	p.initial = p.plan
	p.executeUntil(code, pc)
	if p.bad {
		return nil
	}
	return p.makeUnwindRow()
}

func TestRows(t *testing.T) {
	initial := []byte{cfaDefCFA, rsp, 8, cfaOffset | rip, 1, cfaOffset | rbx, 9}
	cfa := rule{how: offsetItself, register: rsp, offset: 8}
	ra := saved{rip, rule{how: stored, offset: -8}}
	bx := saved{rbx, rule{how: stored, offset: -72}}
	for _, test := range []struct {
		name string
		code []byte
		want *row
	}{
		{"as it begins", nil, &row{cfa: cfa, saved: []saved{bx, ra}}},
		{"later code is not about pc", []byte{cfaAdvance | 6, cfaDefCFAOffset, 16}, &row{cfa: cfa, saved: []saved{bx, ra}}},
		{"a frame pointer", []byte{cfaAdvance | 5, cfaDefCFARegister, rbp}, &row{cfa: rule{how: offsetItself, register: rbp, offset: 8}, saved: []saved{bx, ra}}},
		{"restored to what it was", []byte{cfaOffset | rbx, 2, cfaRestore | rbx}, &row{cfa: cfa, saved: []saved{bx, ra}}},
		{"states", []byte{cfaRememberState, cfaDefCFAOffset, 99, cfaSameValue, rbx, cfaRestoreState}, &row{cfa: cfa, saved: []saved{bx, ra}}},
		{"outermost", []byte{cfaUndefined, rip}, &row{cfa: cfa, saved: []saved{bx}, last: true}},
		{"expressions", []byte{cfaDefCFAExpression, 1, opLit0, cfaValExpression, rbx, 1, opDup}, &row{
			cfa:   rule{how: computed, expression: []byte{opLit0}},
			saved: []saved{{rbx, rule{how: computed, expression: []byte{opDup}}}, ra},
		}},
		{"vector registers", []byte{cfaOffset | 17, 4, cfaOffsetExtended, 0x80, 0x01, 3}, &row{cfa: cfa, saved: []saved{bx, ra}}},
		{"an unknown instruction", []byte{0x3f}, nil},
		{"a state that was not remembered", []byte{cfaRestoreState}, nil},
		{"cut", []byte{cfaDefCFAOffset, 0x80}, nil},
		{"an expression longer than the code", []byte{cfaDefCFAExpression, 0xff, 0xff, 0xff, 0xff, 0x7f, opNop}, nil},
		{"an expression that no compiler writes", append([]byte{cfaValExpression, rbx, 0x81, 0x02}, make([]byte, expressionMax+1)...), nil},
		{"too many states", bytes.Repeat([]byte{cfaRememberState}, rememberedMax+1), nil},
	} {
		if got := rowOf(initial, test.code, 5); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: row %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestExpressions(t *testing.T) {
	m := &machine{bottom: 0x1000}
	m.memory = binary.LittleEndian.AppendUint64(nil, 0x8182838485868788)
	m.set(rsp, 0x1000)
	m.set(rip, 0x401c)
	const bregRsp, bregRip = opBreg0 + rsp, opBreg0 + rip
	for _, test := range []struct {
		name string
		code []byte
		want uint64
		bad  bool
	}{
		{"what it starts with", nil, 7, false},
		{"memory", []byte{bregRsp, 0, opDeref}, 0x8182838485868788, false},
		{"a part of it", []byte{bregRsp, 2, opDerefSize, 2}, 0x8586, false},
		{"PLT: before the push", []byte{bregRsp, 8, bregRip, 0, opLit0 + 15, opAnd, opLit0 + 14, opGe, opLit0 + 3, opShl, opPlus}, 0x1008, false},
		{"PLT: behind it", []byte{bregRsp, 8, bregRip, 0, opLit0 + 15, opAnd, opLit0 + 11, opGe, opLit0 + 3, opShl, opPlus}, 0x1010, false},
		{"subtraction", []byte{opLit0 + 9, opLit0 + 2, opMinus}, 7, false},
		{"a shift of sign", []byte{opConst1s, 0xf0, opLit0 + 2, opShra}, ^uint64(3), false},
		{"rotation", []byte{opLit0 + 1, opLit0 + 2, opLit0 + 3, opRot, opDrop, opMinus}, 2, false},
		{"a branch", []byte{opLit0 + 1, opBra, 1, 0, opDrop, opLit0 + 5}, 5, false},
		{"above the memory", []byte{bregRsp, 8, opDeref}, 0, true},
		{"below it", []byte{bregRsp, 0x7f, opDeref}, 0, true},
		{"an unknown register", []byte{opBreg0, 0}, 0, true},
		{"a loop", []byte{opSkip, 0xfd, 0xff}, 0, true},
		{"a jump out", []byte{opSkip, 0xf0, 0xff}, 0, true},
		{"nothing left", []byte{opDrop}, 0, true},
		{"too much", bytes.Repeat([]byte{opDup}, operandsMax), 0, true},
		{"no operation", []byte{0xff}, 0, true},
		{"division", []byte{opLit0, opLit0, 0x1b}, 0, true},
	} {
		got, ok := m.evaluateExpression(test.code, 7)
		if ok == test.bad || ok && got != test.want {
			t.Errorf("%s: %#x, %v; want %#x, bad %v", test.name, got, ok, test.want, test.bad)
		}
	}
}

func gcc(t testing.TB, words ...string) {
	t.Helper()
	if out, err := exec.Command("gcc", words...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
}

// library returns a small library and the offset of its unwind information.
func library(t testing.TB) (data []byte, from int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "library.so")
	gcc(t, "-O2", "-shared", "-fPIC", "-o", path, "testdata/nest.c")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	image := openImage(bytes.NewReader(data))
	if image == nil || image.table.count == 0 {
		t.Fatal("the library has no unwind information")
	}
	return data, int(image.header) // in such a library, addresses of read-only data equal offsets
}

// Any instructions and any stack give a row and a frame, or none.
func FuzzRow(f *testing.F) {
	initial := []byte{cfaDefCFA, rsp, 8, cfaOffset | rip, 1}
	for op := range 0x100 {
		f.Add(initial, []byte{byte(op), 6, 3, 2, 1}, uint8(op))
		f.Add(initial, []byte{cfaValExpression, rip, 6, opBreg0 + rsp, 8, opDup, byte(op), 1, 0}, uint8(op))
	}
	f.Add(initial, []byte{cfaRememberState, cfaRestoreState, cfaDefCFAExpression, 4, opBreg0 + rsp, 8, opSkip, 0xfb, 0xff}, uint8(0))
	f.Fuzz(func(t *testing.T, initial, code []byte, pc uint8) {
		r := rowOf(initial, code, uint64(pc))
		if r == nil {
			return
		}
		m := machine{memory: make([]byte, 256), bottom: stackAt}
		m.registers = registers{known: 1<<columns - 1}
		m.set(rsp, stackAt)
		if again := rowOf(initial, code, uint64(pc)); !reflect.DeepEqual(r, again) {
			t.Errorf("row %+v, then %+v", r, again)
		}
		if m.stepToCaller(r) && r.last {
			t.Errorf("a caller of the outermost frame: %+v", r)
		}
	})
}

// Any file content gives rows without panic, and in bounded time and memory.
func FuzzFiles(f *testing.F) {
	whole, header := library(f)
	f.Add([]byte{})
	f.Add([]byte{0, 4, 0xff})
	f.Add([]byte{0, 24, 0x80, 0, 25, 0xff, 0, 60, 0x7f})
	for i := range 0x180 { // each byte of the table and of its entries
		f.Add([]byte{byte(i >> 8), byte(i), 0xff})
		f.Add([]byte{byte(i >> 8), byte(i), 0x10})
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		data := bytes.Clone(whole)
		for ; len(changes) >= 3; changes = changes[3:] {
			at := int(binary.BigEndian.Uint16(changes))
			if at >= 0x8000 {
				at = at & 0x3ff // the ELF headers
			} else {
				at += header
			}
			if at < len(data) {
				data[at] ^= changes[2]
			}
		}
		image := openImage(bytes.NewReader(data))
		if image == nil {
			return
		}
		m := machine{memory: make([]byte, 256), bottom: stackAt}
		for pc := uint64(0x1000); pc < 0x1400; pc += 3 { // its code, and beyond
			if r := image.unwindRowAt(pc); r != nil {
				m.registers = registers{known: 1<<columns - 1}
				m.set(rsp, stackAt)
				m.set(rip, pc)
				m.stepToCaller(r)
			}
		}
	})
}

// A walk ends without panic for any registers and memory.
func FuzzWalk(f *testing.F) {
	whole, _ := library(f)
	path := filepath.Join(f.TempDir(), "library.so")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		f.Fatal(err)
	}
	const at = 0x7f00_0000_0000
	space := &fixed{}
	for page := uint64(0); page < 0x3000; page += 0x1000 {
		space.mappings = append(space.mappings, target.Mapping{
			Start: at + page, End: at + page + 0x1000, Offset: page, Exec: page == 0x1000, Inode: 1, Path: path,
		})
	}
	w := newWalker(f, space)
	p := start(f, compile(f, "gcc", "testdata/chain.c", "-O2"))
	for i := range min(len(p.captures), 40) {
		f.Add(wire.AppendSample(nil, &p.captures[i].sample)[:2000])
	}
	frames := make([]uint64, 0, wire.StackMax)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s wire.Sample
		if len(raw) < wire.SizeofCall {
			return
		}
		if _, err := binary.Decode(raw, binary.LittleEndian, &s.Call); err != nil {
			t.Fatal(err)
		}
		s.Memory = raw[wire.SizeofCall:]
		s.Ip = at + s.Ip%0x3000
		got := w.WalkStack(&s, frames)
		if len(got) == 0 || got[0] != s.Ip || len(got) > cap(frames) {
			t.Errorf("frames %#x of %#x", got, s.Ip)
		}
	})
}
