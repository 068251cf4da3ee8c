package wire

import (
	"bytes"
	"testing"
)

func TestSampleKeepsItsParts(t *testing.T) {
	copies := bytes.Repeat([]byte{1}, CallData/2)
	copies = append(copies, bytes.Repeat([]byte{2}, CallData/2)...)
	for _, want := range []Sample{
		{Call: Call{Time: 5, R15: 15}},
		{Call: Call{Result: 7, Copied: [2]uint8{0, 1}}, Copies: copies},
		{Call: Call{Sp: 9}, Memory: []byte("stack")},
		{Call: Call{Copied: [2]uint8{1, 1}}, Copies: copies, Memory: make([]byte, CallStack)},
	} {
		raw := append(AppendSample(nil, &want), "behind it"...) // as in the ring, where a record has room for all of a stack
		got := Sample{Copies: []byte("of the last one"), Memory: []byte("of the last one")}
		if err := DecodeSample(raw, &got); err != nil {
			t.Fatal(err)
		}
		if got.Call != want.Call || !bytes.Equal(got.Copies, want.Copies) || !bytes.Equal(got.Memory, want.Memory) {
			t.Errorf("decoded %+v, want %+v", got, want)
		}
		for i, c := range want.Copied {
			if c == 0 && got.CopiedArgument(i) != nil || c == 1 && !bytes.Equal(got.CopiedArgument(i), copies[i*CallData/2:][:CallData/2]) {
				t.Errorf("copy %d of %v is %x", i, want.Copied, got.CopiedArgument(i))
			}
		}
	}
}

func TestDecodeSampleRefuses(t *testing.T) {
	whole := AppendSample(nil, &Sample{Copies: make([]byte, CallData), Memory: make([]byte, 8)})
	odd := AppendSample(nil, &Sample{Copies: make([]byte, CallData-1)})
	for _, raw := range [][]byte{nil, whole[:SizeofCall-1], whole[:SizeofCall], whole[:len(whole)-1], odd} {
		if err := DecodeSample(raw, &Sample{}); err == nil {
			t.Errorf("%d bytes of a sample were taken for one", len(raw))
		}
	}
	// Copies that are said to be there and are not.
	s := Sample{Call: Call{Copied: [2]uint8{1, 1}}}
	if s.CopiedArgument(0) != nil || s.CopiedArgument(1) != nil {
		t.Errorf("copies of a sample without any: %x, %x", s.CopiedArgument(0), s.CopiedArgument(1))
	}
}
