package target

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
)

// asker returns a function that runs the query as QueryDrivers expects, with additions to its environment.
func asker(t *testing.T, more ...string) func(context.Context, []string) ([]byte, error) {
	t.Helper()
	shim, err := payload.OpenShim()
	if err != nil {
		t.Fatal(err)
	}
	library, err := io.ReadAll(shim)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "libgpumemtop.so")
	put(t, path, string(library))
	return func(ctx context.Context, environment []string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "/bin/true")
		cmd.Env = slices.Concat(os.Environ(), more, environment, []string{"LD_PRELOAD=" + path})
		return cmd.Output()
	}
}

// askingSource is a program that fetches an extension function and reports its address.
const askingSource = `
#include <dlfcn.h>
#include <stdio.h>
typedef void *platform;
int main(int count, char **names)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
	int (*ids)(unsigned, platform *, unsigned *) = (int (*)(unsigned, platform *, unsigned *))dlsym(library, "clGetPlatformIDs");
	void *(*ask)(platform, const char *) = (void *(*)(platform, const char *))dlsym(library, "clGetExtensionFunctionAddressForPlatform");
	platform first = NULL;
	ids(1, &first, NULL);
	for (int i = 1; i < count; i++)
		printf("%s %p\n", names[i], ask(first, names[i]));
	puts("ready");
	fflush(stdout);
	return getchar() != EOF;
}`

// An extension function is at the same place in all processes with this driver.
func TestQueryDrivers(t *testing.T) {
	const none = "clThereIsNoSuchFunctionKHR"
	names := append([]string{none}, someExtensions...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found, err := QueryDrivers(ctx, asker(t), names)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, append([]string{build(t, "asking", askingSource, "-ldl")}, names...)...)
	p, mapped := opened(t, s.Process.Pid)
	c := NewCatalog(someCore, names)
	c.LearnExtensions(found)
	list := c.LibrariesOfProcess(p, mapped)
	if len(s.addresses) == 0 || len(found) < len(s.addresses) {
		t.Errorf("%d functions are found, where a program gets %d", len(found), len(s.addresses))
	}
	for name, address := range s.addresses {
		want := offsetOf(t, mapped, address)
		if !slices.ContainsFunc(list, func(l Library) bool { return l.Functions[name] == want }) {
			t.Errorf("%s, at %#x in its file, is in no library: %+v", name, want, list)
		}
	}
	if slices.ContainsFunc(found, func(e Extension) bool { return e.Name == none }) {
		t.Errorf("%s is found: %+v", none, found)
	}
}

// vendorsFolder registers a driver in a folder for loaders, and returns the setting.
func vendorsFolder(t *testing.T, source string) string {
	t.Helper()
	library := build(t, "libbad.so", source, "-shared", "-fPIC")
	dir := t.TempDir()
	put(t, dir+"/bad.icd", library+"\n")
	return "OCL_ICD_VENDORS=" + dir + "/"
}

func TestDriversThatFail(t *testing.T) {
	crash := vendorsFolder(t, "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }")
	if list, err := QueryDrivers(t.Context(), asker(t, crash), someExtensions); err == nil || len(list) > 0 {
		t.Errorf("a crash: %v, %v", list, err)
	}
	leave := vendorsFolder(t, "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { _exit(0); }")
	if list, err := QueryDrivers(t.Context(), asker(t, leave), someExtensions); err == nil || !strings.Contains(err.Error(), "ended before it was done") || len(list) > 0 {
		t.Errorf("an exit: %v, %v", list, err)
	}
	hang := vendorsFolder(t, "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { for (;;) pause(); }")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if list, err := QueryDrivers(ctx, asker(t, hang), someExtensions); err == nil || len(list) > 0 {
		t.Errorf("a hang: %v, %v", list, err)
	}
}

// Answers before a failure are kept, and incomplete lines are ignored.
func TestAnswersOfDrivers(t *testing.T) {
	library := fakeLibrary(t)
	said := "preloaded\nextension\tclA\t" + library + "\t4096\nextension\tclA\t" + library + "\t4096\n" +
		"extension\tclB\tlibrelative.so\t4096\nextension\tclB\t" + library + "\tx\nextension\tclB\t" + library + "\t99999999\n" +
		"extension\tclB\t/none\t1\nextension\tclB\t/dev/null\t1\nextension\tclB\t/etc/passwd\t1\nextension\tclB\n"
	answer := func(out string, err error) func(context.Context, []string) ([]byte, error) {
		return func(_ context.Context, environment []string) ([]byte, error) {
			if !slices.Equal(environment, []string{"GPUMEMTOP_PROBE=extensions clA clB"}) {
				t.Errorf("asked with %q", environment)
			}
			return []byte(out), err
		}
	}
	names := []string{"clA", "clB"}
	killed := errors.New("killed")
	for _, test := range []struct {
		out  string
		err  error
		want string
	}{
		{said + "end\n", nil, ""},
		{said, killed, "killed"},
		{said, nil, "ended before it was done"},
		{said + "error\tclGetPlatformIDs returned -1001\nend\n", nil, "-1001"},
	} {
		list, err := QueryDrivers(t.Context(), answer(test.out, test.err), names)
		if len(list) != 1 || list[0].Name != "clA" || list[0].Offset != 4096 {
			t.Errorf("%+v", list)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// FuzzExtensions reads what the query of the drivers printed: entries are of libraries that are there, each once.
func FuzzExtensions(f *testing.F) {
	f.Add([]byte("extension\tclCreateBuffer\t/proc/self/exe\t4096\nerror\tno driver\nend\n"))
	f.Add([]byte("extension\t\t\t\nextension\ta\trelative\t18446744073709551615\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		list, _ := parseExtensions(out)
		for i, e := range list {
			if !filepath.IsAbs(e.Path) || slices.Contains(list[:i], e) {
				t.Errorf("%+v", list)
			}
		}
	})
}
