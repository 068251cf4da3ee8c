package target

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const systemLoader = "libOpenCL.so.1"

func TestLoaderOfTheSystem(t *testing.T) {
	core := append([]string{"clEnqueueNDRangeKernel", "clSVMAlloc", "clCreateBufferWithProperties"}, someCore...)
	arguments := append([]string{holder(t), systemLoader, "-"}, core...)
	s := start(t, arguments...)
	p, mapped := opened(t, s.Process.Pid)
	c := NewCatalog(core, someExtensions)
	list := c.LibrariesOfProcess(p, mapped)
	if len(list) != 1 || !list[0].Loader || list[0].Err != nil || len(list[0].Missing) != 0 {
		t.Fatalf("%+v", list)
	}
	checkOffsets(t, s, mapped, &list[0])
	if got, want := slices.Sorted(maps.Keys(list[0].Functions)), slices.Sorted(slices.Values(core)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// The file that the linker's cache names.
	paths := KnownLoaders()
	if len(paths) == 0 {
		t.Fatal("no loader is known")
	}
	known, err := c.LibraryAt(paths[0])
	if err != nil || known.Device != list[0].Device || known.Inode != list[0].Inode || !maps.Equal(known.Functions, list[0].Functions) {
		t.Errorf("%+v, %v", known, err)
	}
}

func TestPrivateCopyOfALoader(t *testing.T) {
	source := fakeLibrary(t)
	first, second := copyOf(t, source, "libOpenCL-83e1a.so.1"), copyOf(t, source, "plugin.bin")
	// A process with three loaders: two copies, and the system's.
	s := start(t, "env", "LD_PRELOAD="+first+":"+second, holder(t), systemLoader)
	p, mapped := opened(t, s.Process.Pid)
	list := NewCatalog(someCore, nil).LibrariesOfProcess(p, mapped)
	opens := map[string]bool{}
	for i := range list {
		if !list[i].Loader || len(list[i].Functions) < 3 {
			t.Errorf("%+v", list[i])
		}
		opens[list[i].Open] = true
	}
	if len(list) != 3 || !opens[first] || !opens[second] {
		t.Errorf("%v", opens)
	}
}

// Symbols that are no functions, and two names for one place.
func TestWhatIsProbed(t *testing.T) {
	_, _, l := sole(t, start(t, holder(t), fakeLibrary(t)).Process.Pid)
	want := []string{"clCreateBuffer", "clCreateContext", "clReleaseMemObject"}
	if got := slices.Sorted(maps.Keys(l.Functions)); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	// The first wanted name counts.
	list := NewCatalog([]string{"clEnqueueTask", "clReleaseMemObject"}, nil)
	other, err := list.LibraryAt(l.Open)
	if err != nil || len(other.Functions) != 1 || other.Functions["clEnqueueTask"] != l.Functions["clReleaseMemObject"] {
		t.Errorf("%+v, %v", other, err)
	}
}

// A program with a loader linked into it, which reports where its functions are.
func TestProgramWithALoader(t *testing.T) {
	source := "#include <stdio.h>\n" + strings.ReplaceAll(fakeLoader, `__attribute__((ifunc("choose")))`, "{ return choose()(); }") + `
int main(void)
{
	printf("clCreateBuffer %p\nclCreateContext %p\nready\n", (void *)clCreateBuffer, (void *)clCreateContext);
	fflush(stdout);
	return getchar() != EOF;
}`
	for _, flags := range [][]string{{"-static"}, {"-static-pie", "-fPIE"}, {"-no-pie"}, {"-pie", "-fPIE"}, {"-rdynamic", "-s"}} {
		s := start(t, build(t, "program", source, flags...))
		_, mapped, l := sole(t, s.Process.Pid)
		if !l.Loader || filepath.Base(l.Path) != "program" {
			t.Errorf("%v: %+v", flags, l)
		}
		checkOffsets(t, s, mapped, &l)
	}
	s := start(t, build(t, "program", source, "-static", "-s"))
	p, mapped := opened(t, s.Process.Pid)
	if list := NewCatalog(someCore, nil).LibrariesOfProcess(p, mapped); len(list) != 0 {
		t.Errorf("without symbols: %+v", list)
	}
}

// Of several versions of a function the default one counts.
func TestDefaultVersionCounts(t *testing.T) {
	source := `
__asm__(".symver old,clCreateBuffer@V1");
__asm__(".symver new,clCreateBuffer@@V2");
int old(void) { return 1; }
int new(void) { return 2; }
int clGetPlatformIDs(void) { return 3; }`
	script := filepath.Join(t.TempDir(), "versions")
	put(t, script, "V1 { global: clGetPlatformIDs; local: *; };\nV2 { global: clCreateBuffer; } V1;\n")
	library := build(t, "libversions.so", source, "-shared", "-fPIC", "-Wl,--version-script="+script)
	s := start(t, holder(t), library, "-", "clCreateBuffer")
	_, mapped, l := sole(t, s.Process.Pid)
	checkOffsets(t, s, mapped, &l)
}

const fakeVendor = `
int FakeclGetExtensionFunctionAddress(void) { return 1; }
int FakeclCreateCommandBufferKHR(void) { return 2; }
int clSetContentSizeBufferPoCL(void) { return 3; }
int XXclCreateBufferWithPropertiesINTEL(void) { return 4; }
int clGetPlatformIDs(void) { return 5; }
int clCreateBuffer(void) { return 6; }
int FakeclIcdGetPlatformIDsKHR(void) { return 7; }`

func TestVendorsLibrary(t *testing.T) {
	library := build(t, "libfakevendor.so", fakeVendor, "-shared", "-fPIC")
	s := start(t, holder(t), library, "-", "clSetContentSizeBufferPoCL", "clCreateBuffer")
	_, mapped, l := sole(t, s.Process.Pid)
	if l.Loader || !slices.Equal(l.Missing, []string{"clCreateBufferWithPropertiesINTEL"}) {
		t.Errorf("%+v", l)
	}
	checkOffsets(t, s, mapped, &l)
	if want := []string{"clCreateBuffer", "clCreateCommandBufferKHR", "clSetContentSizeBufferPoCL"}; !slices.Equal(slices.Sorted(maps.Keys(l.Functions)), want) {
		t.Errorf("%v", l.Functions)
	}
	// With a loader in the process, OpenCL's own functions are called through that.
	s = start(t, "env", "LD_PRELOAD="+library, holder(t), systemLoader)
	p, mapped := opened(t, s.Process.Pid)
	list := NewCatalog(someCore, someExtensions).LibrariesOfProcess(p, mapped)
	if len(list) != 2 || list[0].Loader == list[1].Loader {
		t.Fatalf("%+v", list)
	}
	for i := range list {
		_, creates := list[i].Functions["clCreateBuffer"]
		_, extends := list[i].Functions["clCreateCommandBufferKHR"]
		if creates != list[i].Loader || extends == list[i].Loader {
			t.Errorf("%+v", list[i])
		}
	}
}

// A driver that exports only what a loader needs, with that loader.
func TestDriverOfTheSystem(t *testing.T) {
	s := start(t, holder(t), systemLoader, "clGetPlatformIDs")
	p, mapped := opened(t, s.Process.Pid)
	c := NewCatalog(someCore, someExtensions)
	list := c.LibrariesOfProcess(p, mapped)
	at := slices.IndexFunc(list, func(l Library) bool { return !l.Loader })
	if len(list) < 2 || at < 0 {
		t.Fatalf("no driver is there: %+v", list)
	}
	driver := &list[at]
	if len(driver.Functions) != 0 || !slices.Equal(driver.Missing, someExtensions) {
		t.Skipf("%s exports extension functions", driver.Path)
	}
	// Learned after the process was inspected, and before.
	e := Extension{Name: someExtensions[1], Path: driver.Open, Identity: driver.Identity, Offset: 0x1234}
	c.LearnExtensions([]Extension{e})
	fresh := NewCatalog(someCore, someExtensions)
	fresh.LearnExtensions([]Extension{e})
	for _, c := range []*Catalog{c, fresh} {
		l := c.LibrariesOfProcess(p, mapped)[at]
		if len(l.Functions) != 1 || l.Functions[e.Name] != e.Offset || slices.Contains(l.Missing, e.Name) || len(l.Missing) != len(someExtensions)-1 {
			t.Errorf("%+v", l)
		}
	}
	if len(driver.Functions) != 0 {
		t.Error("what was handed out before has changed")
	}
}

// A file may have extension functions although no symbol of it belongs to OpenCL.
func TestLearnedOfAnyFile(t *testing.T) {
	library := build(t, "libplain.so", "int f(void) { return 1; }", "-shared", "-fPIC")
	p, mapped := opened(t, start(t, holder(t), library).Process.Pid)
	c := NewCatalog(someCore, someExtensions)
	if list := c.LibrariesOfProcess(p, mapped); len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	at := slices.IndexFunc(mapped, func(m Mapping) bool { return m.Path == library && m.Exec })
	e, err := p.LocateFunction(someExtensions[0], mapped[at].Start)
	if err != nil {
		t.Fatal(err)
	}
	e.Offset = 0x1100
	c.LearnExtensions([]Extension{e})
	list := c.LibrariesOfProcess(p, mapped)
	if len(list) != 1 || list[0].Loader || list[0].Functions[someExtensions[0]] != 0x1100 {
		t.Errorf("%+v", list)
	}
	// What was learned does not hold for another file with the same inode.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(library, later, later); err != nil {
		t.Fatal(err)
	}
	if list := c.LibrariesOfProcess(p, mapped); len(list) != 0 {
		t.Errorf("of a file that was rewritten: %+v", list)
	}
}

// Each file is read once, also without OpenCL functions, unless it changes.
func TestFilesAreReadOnce(t *testing.T) {
	library := fakeLibrary(t)
	p, mapped := opened(t, start(t, holder(t), library).Process.Pid)
	c := NewCatalog(someCore, nil)
	first := c.LibrariesOfProcess(p, mapped)
	size := len(c.files)
	if size < 3 { // the program, the C library, the linker
		t.Errorf("%d files are known", size)
	}
	for key := range c.files {
		c.files[key] = nil // to be used as it is
	}
	if again := c.LibrariesOfProcess(p, mapped); len(first) != 1 || len(again) != 0 || len(c.files) != size {
		t.Errorf("%d libraries, then %d; %d files, then %d", len(first), len(again), size, len(c.files))
	}
	if err := os.Chmod(library, 0o700); err != nil {
		t.Fatal(err)
	}
	if again := c.LibrariesOfProcess(p, mapped); len(again) != 1 {
		t.Errorf("%d libraries after it has changed", len(again))
	}
}

func TestFilesThatAreNone(t *testing.T) {
	c := NewCatalog(someCore, nil)
	empty := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	put(t, empty, "")
	if l, err := c.LibraryAt(empty); err != nil || len(l.Functions) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	for _, path := range []string{"/dev/null", t.TempDir(), "/none"} {
		if l, err := c.LibraryAt(path); err == nil {
			t.Errorf("%+v", l)
		}
	}
}

func FuzzSymbols(f *testing.F) {
	for _, flags := range [][]string{{"-shared"}, {"-shared", "-s"}, {"-c"}} {
		library := build(f, "seed", "int clGetPlatformIDs(void) { return 2; } int FakeclGetExtensionFunctionAddress(void) { return 1; }",
			append(flags, "-fPIC", "-nostdlib", "-Wl,-z,noseparate-code", "-Wl,--build-id=none")...)
		data, err := os.ReadFile(library)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := strings.NewReader(string(data))
		found := NewCatalog(someCore, someExtensions).contentToProbe(readSymbols(r), Identity{})
		if found == nil {
			return
		}
		places := slices.Collect(maps.Values(found.functions))
		for i, e := range functionExtents(r, places) {
			if e.next == 0 {
				t.Errorf("the function at %#x ends where it begins", places[i])
			}
		}
	})
}
