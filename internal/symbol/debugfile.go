package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"hash/crc32"
	"io"
	"path/filepath"
)

// openSeparateDebugFile opens the separate debug file of a module. Like gdb it looks by build id below root, then by the name in
// .gnu_debuglink beside the module, in .debug, and below root. It returns nil if no file belongs to the module.
func openSeparateDebugFile(file *object, path, root string) *object {
	id := buildID(file.File)
	if len(id) > 1 {
		name := hex.EncodeToString(id)
		if f := openDebugIfMatching(filepath.Join(root, ".build-id", name[:2], name[2:]+".debug"), id, 0); f != nil {
			return f
		}
	}
	link, sum := readDebugLink(file.File)
	if link == "" {
		return nil
	}
	directory := filepath.Dir(path)
	for _, place := range []string{directory, filepath.Join(directory, ".debug"), filepath.Join(root, directory)} {
		if f := openDebugIfMatching(filepath.Join(place, link), id, sum); f != nil {
			return f
		}
	}
	return nil
}

// openDebugIfMatching opens a debug file if it has the module's build id, or, when the module has none, the right checksum.
func openDebugIfMatching(path string, id []byte, sum uint32) *object {
	f, err := openObject(path)
	if err != nil {
		return nil
	}
	fits := bytes.Equal(buildID(f.File), id)
	if len(id) == 0 {
		fits = checksum(f) == sum
	}
	if !fits {
		f.close()
		return nil
	}
	return f
}

func checksum(f *object) uint32 {
	info, err := f.file.Stat()
	if err != nil || info.Size() > checksumMax {
		return 0
	}
	hash := crc32.NewIEEE()
	if _, err := io.Copy(hash, io.NewSectionReader(f.file, 0, info.Size())); err != nil {
		return 0
	}
	return hash.Sum32()
}

// BuildID returns the build id of a file in hexadecimal, empty when it is no readable regular file in ELF or has none. It
// may be called from any goroutine.
func BuildID(path string) (id string) {
	defer func() {
		if recover() != nil { // debug/elf: see load
			id = ""
		}
	}()
	file, err := openObject(path)
	if err != nil {
		return ""
	}
	defer file.close()
	return hex.EncodeToString(buildID(file.File))
}

// buildID returns the bytes of the NT_GNU_BUILD_ID note, nil when there is none.
func buildID(f *elf.File) []byte {
	const kind, name, limit = 3, "GNU\x00", 4096
	section := f.Section(".note.gnu.build-id")
	if section == nil || section.Size > limit {
		return nil
	}
	note, err := section.Data()
	if err != nil || len(note) < 16 {
		return nil
	}
	size := f.ByteOrder.Uint32(note[4:])
	if f.ByteOrder.Uint32(note) != 4 || f.ByteOrder.Uint32(note[8:]) != kind || string(note[12:16]) != name ||
		uint64(size) > uint64(len(note)-16) {
		return nil
	}
	return note[16 : 16+size]
}

// readDebugLink returns name and CRC-32 from .gnu_debuglink: a NUL-terminated name, padding to four bytes, the sum.
func readDebugLink(f *elf.File) (string, uint32) {
	const limit = 4096
	section := f.Section(".gnu_debuglink")
	if section == nil || section.Size > limit {
		return "", 0
	}
	data, err := section.Data()
	if err != nil {
		return "", 0
	}
	name, _, found := bytes.Cut(data, []byte{0})
	at := (len(name) + 4) &^ 3
	if !found || len(data) < at+4 || filepath.Base(string(name)) != string(name) {
		return "", 0
	}
	return string(name), f.ByteOrder.Uint32(data[at:])
}
