package session

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzObstacle looks at programs and scripts of any content.
func FuzzObstacle(f *testing.F) {
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{shell[:1024], []byte("#! /bin/sh -e\n"), []byte("#!a\n"), []byte("#!"), nil} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "a")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if why := PreloadObstacle(path); linkerRefuses(path) && why == "" {
			t.Error("it refuses the library for no reason")
		}
	})
}
