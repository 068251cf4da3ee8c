package untrusted

import (
	"io"
	"os"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// scriptBytes bounds the script that the build of a process is made of.
const scriptBytes = 4 << 20

// ReadProcessPlace returns who a process is among others. proc is its folder in /proc.
func ReadProcessPlace(proc string) wire.Place {
	return wire.ReadPlace(func(file string) []byte {
		if !strings.Contains(file, "/") { // of the kernel's own
			text, _ := os.ReadFile(proc + "/" + file)
			return text
		}
		script, err := OpenRegular(proc+"/"+file, 0)
		if err != nil {
			return nil
		}
		defer script.Close() //nolint:errcheck // only read
		text, _ := io.ReadAll(io.LimitReader(script, scriptBytes))
		return text
	})
}
