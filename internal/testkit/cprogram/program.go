// Package cprogram compiles C programs for tests and sends them commands, line by line.
package cprogram

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// RunCompiler runs gcc with these arguments. Warnings are errors.
func RunCompiler(arguments ...string) error {
	out, err := exec.Command("gcc", append([]string{"-std=gnu11", "-Wall", "-Wextra", "-Werror"}, arguments...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("gcc: %w: %s", err, out)
	}
	return nil
}

// Program is a process that takes lines and answers with lines. It is for the goroutine of its test.
type Program struct {
	Process *exec.Cmd

	tb  testing.TB
	in  io.WriteCloser
	out *bufio.Reader
}

// StartProgram runs a command until End or the end of the test.
func StartProgram(tb testing.TB, command *exec.Cmd) *Program {
	tb.Helper()
	in, err := command.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &Program{Process: command, tb: tb, in: in, out: bufio.NewReader(out)}
	tb.Cleanup(p.Kill)
	return p
}

// PID returns the number of the process.
func (p *Program) PID() int { return p.Process.Process.Pid }

// Kill kills the process and waits for it. A second call does nothing.
func (p *Program) Kill() {
	_ = p.Process.Process.Kill()
	_ = p.Process.Wait()
}

// SendLine writes a line. The test fails if the process does not accept it.
func (p *Program) SendLine(line string) {
	p.tb.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.tb.Fatal(err)
	}
}

// NextLine waits for the next line of the process. The test fails if it ends first.
func (p *Program) NextLine() string {
	p.tb.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.tb.Fatalf("read the program's answer: %v", err)
	}
	return strings.TrimSpace(line)
}
