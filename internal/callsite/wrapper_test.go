package callsite

import (
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestWrappers(t *testing.T) {
	const (
		alloc, other = "my_alloc\tpool.c\t88\tapp+0x10\n", "my_alloc\tpool.c\t90\tapp+0x18\n"
		again        = "my_alloc\tpool.c\t93\tapp+0x1c\n"
		first        = "main\tmain.c\t12\tapp+0x20\n"
		second       = "main\tmain.c\t13\tapp+0x28\n"
		library      = "zeros\t/usr/include/cl.hpp\t7\tapp+0x30\n"
		dark         = "\t\t\tapp+0x40\n"
	)
	for name, test := range map[string]struct {
		sites []string
		want  []Wrapper
	}{
		"two callers":       {[]string{alloc + first, alloc + second}, []Wrapper{{"my_alloc", "pool.c:88 my_alloc", 2}}},
		"one caller":        {[]string{alloc + first, alloc + first + dark}, nil},
		"twice in a line":   {[]string{alloc + first, alloc + "main\tmain.c\t12\tapp+0x24\n"}, nil},
		"two places":        {[]string{alloc + first, alloc + second, other + first}, nil},
		"below a library":   {[]string{library + alloc + first, library + alloc + second}, []Wrapper{{"my_alloc", "pool.c:88 my_alloc via zeros", 2}}},
		"calls itself":      {[]string{alloc + first, alloc + again + first}, nil},
		"outermost":         {[]string{first, second}, nil},
		"without functions": {[]string{dark + first, dark + second}, nil},
		"only libraries":    {[]string{library}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewNames()
			for i, payload := range test.sites {
				r := wire.SiteFields{Tag: uint32(i + 1)}.Record([]byte(payload))
				n.AddRecord(&r)
			}
			if got := n.FunctionsWithSeveralCallers(); !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestCallersOfALine: two calls on one line are one caller, as the option names them.
func TestCallersOfALine(t *testing.T) {
	const alloc = "my_alloc\tpool.c\t88\tapp+0x10\n"
	for second, same := range map[string]bool{"main\tmain.c\t12\tapp+0x24": true, "main\tmain.c\t13\tapp+0x24": false} {
		_, a := CreatorAndCaller([]byte(alloc + "main\tmain.c\t12\tapp+0x20"))
		if _, b := CreatorAndCaller([]byte(alloc + second)); a == "" || (a == b) != same {
			t.Errorf("callers are %q and %q", a, b)
		}
	}
}
