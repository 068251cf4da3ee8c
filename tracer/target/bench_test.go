package target

import (
	"os"
	"testing"
)

// What a process costs that is looked at for the second time, as all but the first of a kind are: with --all that is
// paid for every process of the machine.
func BenchmarkLook(b *testing.B) {
	p, err := OpenProcess(os.Getppid())
	if err != nil {
		b.Fatal(err)
	}
	c := NewCatalog(someCore, nil)
	for b.Loop() {
		p, err = OpenProcess(p.PID)
		if err != nil {
			b.Fatal(err)
		}
		maps, err := p.ReadMappings()
		if err != nil {
			b.Fatal(err)
		}
		c.LibrariesOfProcess(p, maps)
	}
}
