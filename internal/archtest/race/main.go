// Race prints what make test runs without the race detector, as arguments of go test: "serial" for the packages in which the
// detector finds nothing, "slow" for single tests of other packages.
package main

import (
	"fmt"
	"os"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/archtest"
)

func main() {
	if err := listFolders(strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func listFolders(what string) error {
	files, err := archtest.LoadGoFiles(".")
	if err != nil {
		return err
	}
	folders := archtest.RaceFreeFolders(files)
	if what == "slow" {
		tests, slow, err := archtest.SlowTests(files)
		if err != nil {
			return err
		}
		fmt.Printf("-run ^(%s)$\n", strings.Join(tests, "|"))
		folders = slow
	}
	for _, folder := range folders {
		fmt.Println(archtest.Module + "/" + folder)
	}
	return nil
}
