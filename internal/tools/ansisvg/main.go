// Ansisvg turns a terminal screen with its colours, as tmux capture-pane -ep prints it, into an SVG picture.
//
//	tmux capture-pane -ep -t 0 | ansisvg > screen.svg
//
// Braille, blocks and lines are drawn as shapes, because fonts differ in them and leave gaps; all else is text.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: ansisvg < SCREEN > PICTURE.svg")
		os.Exit(2)
	}
	if err := convert(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "ansisvg:", err)
		os.Exit(1)
	}
}

// inputMax bounds the input: a screen has a few hundred kilobytes at most.
const inputMax = 16 << 20

func convert(w io.Writer, r io.Reader) error {
	in, err := io.ReadAll(io.LimitReader(r, inputMax))
	if err != nil {
		return fmt.Errorf("read screen: %w", err)
	}
	out := bufio.NewWriter(w)
	writeSVG(out, parse(string(in)))
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}
