package units

import "testing"

func TestParse(t *testing.T) {
	for in, want := range map[string]uint64{
		"0": 0, "4096": 4096, "64k": 64 << 10, "64K": 64 << 10, "512MiB": 512 << 20, "512M": 512 << 20, "512mb": 512 << 20,
		"1.5g": 3 << 29, "2 GiB": 2 << 30, "1T": 1 << 40, "12B": 12, ".5k": 512,
	} {
		got, err := ParseSize(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "12Q", "M", "-1", "1e9", "0x10", "1KM", "1iB", "nan", "inf", "99999E", "1..2", "1 2", "1_0"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", in, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for in, want := range map[uint64][2]string{
		0: {"0", "0 B"}, 12: {"12", "12 B"}, 1023: {"1023", "1023 B"}, 1024: {"1.00K", "1.00 KiB"},
		64 << 10: {"64.0K", "64.0 KiB"}, 768 << 20: {"768.0M", "768.0 MiB"}, 1<<30 - 1: {"1.00G", "1.00 GiB"},
		1535500000: {"1.43G", "1.43 GiB"}, 1<<64 - 1: {"16.0E", "16.0 EiB"},
	} {
		if got := [2]string{Format(in), FormatLong(in)}; got != want {
			t.Errorf("%d: got %q, want %q", in, got, want)
		}
	}
}

func TestApart(t *testing.T) {
	for in, want := range map[[2]uint64][2]string{
		{20 << 20, 20 << 20}: {"20.0 MiB", "20.0 MiB"}, {19 << 20, 20 << 20}: {"19.0 MiB", "20.0 MiB"}, {1 << 20, 1 << 30}: {"1.00 MiB", "1.00 GiB"},
		{20<<20 - 16<<10, 20 << 20}: {"19.98 MiB", "20.00 MiB"}, {5<<20 + 4<<10, 5 << 20}: {"5.004 MiB", "5.000 MiB"},
		{20<<30 - 1, 20 << 30}: {"19.999999999 GiB", "20.000000000 GiB"}, {1023, 1022}: {"1023 B", "1022 B"},
		{1<<64 - 1, 1<<64 - 2}: {"16.0 EiB", "16.0 EiB"},
	} {
		first, second := FormatApart(in[0], in[1])
		if got := [2]string{first, second}; got != want {
			t.Errorf("%d: got %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"512MiB", "1.5g", "12Q", "", "é", "1e400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil && n != 0 {
			t.Fatalf("Parse(%q) = %d and %v", s, n, err)
		}
		if _, again := ParseSize(Format(n)); again != nil {
			t.Fatalf("Format(%d) = %q does not parse: %v", n, Format(n), again)
		}
	})
}
