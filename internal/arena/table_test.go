package arena

import (
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	table, err := ReadTable(strings.NewReader("\ufeffBuffer_ID,start,end,size,hint,alignment,gaps,offset\na,0,2,8,7,4,1-1 2-2@0:4,99\n\"b,c\",-3,0,1,,1,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Buffer{
		{ID: "a", Upper: 3, Size: 8, Align: 4, Gaps: []Gap{{Lower: 1, Upper: 2}, {Lower: 2, Upper: 3, To: 4}}},
		{ID: "b,c", Lower: -3, Upper: 1, Size: 1, Align: 1},
	}
	if !reflect.DeepEqual(table.Buffers, want) {
		t.Errorf("read %+v, want %+v", table.Buffers, want)
	}
	var out strings.Builder
	if err := table.WriteWithOffsets(&out, []uint64{4, 0}); err != nil {
		t.Fatal(err)
	}
	const text = "Buffer_ID,start,end,size,hint,alignment,gaps,offset\na,0,2,8,7,4,1-1 2-2@0:4,4\n\"b,c\",-3,0,1,,1,,0\n"
	if got := strings.TrimPrefix(out.String(), "\ufeff"); got != text {
		t.Errorf("wrote %q", got)
	}
}

func TestReadBad(t *testing.T) {
	const header = "id,lower,upper,size,alignment,gaps\n"
	for text, want := range map[string]string{
		"":                                        "nothing is there: want id,lower,upper,size",
		"id,lower,size\n":                         "line 1: no column upper",
		"id,lower,upper,size,begin\n":             "line 1: two columns are called lower or begin or start",
		"id,lower,upper,size\na,0,1\n":            "wrong number of fields",
		header + "a,x,1,1,1,\n":                   `line 2: lower "x": want a whole number`,
		header + "a,0,1,-1,1,\n":                  `line 2: size "-1": want bytes`,
		header + "a,0,1,1,q,\n":                   `line 2: alignment "q": want bytes`,
		header + "\na,0,9,1,1,5\n":                `line 3: gap "5": want first-last`,
		header + "a,0,9,1,1,5-6@1\n":              `line 2: gap "5-6@1": want first-last`,
		header + "a,0,9,1,1,5-10\n":               "line 2: buffer \"a\": gap 5-10: want it within the life",
		header + "a,3,2,1,1,\n":                   "line 2: buffer \"a\": upper 2 is before lower 3",
		header + "a,0,9223372036854775807,1,1,\n": "line 2: upper 9223372036854775807: want a number of at most",
	} {
		if _, err := ReadTable(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Whatever can be read can be placed, and comes back with its offsets as it was.
func FuzzRead(f *testing.F) {
	f.Add("id,lower,upper,size\na,0,3,4\nb,-2,9,18446744073709551615\n")
	f.Add("start,size,buffer,end,alignment,gaps\n1,1,1,1,8,1-1@0:1\n0,9,2,7,,\n")
	f.Add("id,lower,upper,size,offset,alignment\na,0,3,4,1,3\nb,1,2,3,4,5\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadTable(strings.NewReader(text))
		if err != nil || len(table.Buffers) > 50 {
			return
		}
		s, err := PlaceBuffers(t.Context(), table.Buffers, Options{Workers: 1, Steps: 256})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := table.WriteWithOffsets(&out, s.Offsets); err != nil {
			t.Fatal(err)
		}
		again, err := ReadTable(strings.NewReader(out.String()))
		if err != nil || !reflect.DeepEqual(again.Buffers, table.Buffers) {
			t.Fatalf("%q: %v, %+v, want %+v", out.String(), err, again, table.Buffers)
		}
		if height, err := ValidatePlacement(again.Buffers, s.Offsets); err != nil || height != s.Height {
			t.Fatalf("height %d, want %d: %v", height, s.Height, err)
		}
	})
}
