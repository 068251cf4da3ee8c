package e2e

import (
	"debug/elf"
	"testing"
)

// TestNoTemplateEngineIsLinked: templates call methods by name, so the linker would keep every method of every type, a sixth of the
// program, and each start would wait for its pages. Cobra's SetVersionTemplate and its like link one, too.
func TestNoTemplateEngineIsLinked(t *testing.T) {
	f, err := elf.Open(gpumemtop())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	main := false
	for _, s := range symbols {
		main = main || s.Name == "main.main"
		if s.Name == "text/template.(*Template).Execute" {
			t.Errorf("%s is linked", s.Name)
		}
	}
	if !main {
		t.Error("the program has no names of functions")
	}
}
