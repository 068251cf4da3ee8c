package target

import (
	"bufio"
	"os/exec"
	"testing"
	"time"
)

// manyMappings has more mappings than the kernel writes at once, says how it is ready, and waits.
const manyMappings = `
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 2000; i++)
		mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	puts("ready");
	fflush(stdout);
	pause();
}
`

// Mappings that are read while the process ends are all of them or none: with a part, stacks would end early.
func TestMapsOfAnEndingProcess(t *testing.T) {
	program := build(t, "many", manyMappings)
	for i := range 40 {
		cmd := exec.Command(program)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		p, err := OpenProcess(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		all, err := p.ReadMappings()
		if err != nil || len(all) < 2000 {
			t.Fatalf("%d mappings: %v", len(all), err)
		}
		time.AfterFunc(time.Duration(i)*50*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for {
			list, err := p.ReadMappings()
			if len(list) == 0 {
				break
			}
			if len(list) != len(all) {
				t.Fatalf("try %d: %d of %d mappings: %v", i, len(list), len(all), err)
			}
		}
		_ = cmd.Wait()
	}
}
