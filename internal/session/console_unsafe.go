package session

import (
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ConsoleLacks reports whether a terminal is a Linux console whose font lacks a character.
func ConsoleLacks(terminal *os.File, character rune) bool {
	const getUnicodeMap = 0x4b66 // GIO_UNIMAP: which glyph of the font shows which character, see ioctl_console(2)
	type shown struct{ character, _ uint16 }
	list := make([]shown, 1<<16-1)
	font := struct {
		count uint16
		list  *shown
	}{uint16(len(list)), &list[0]}
	if _, _, err := unix.Syscall(unix.SYS_IOCTL, terminal.Fd(), getUnicodeMap, uintptr(unsafe.Pointer(&font))); err != 0 {
		return false
	}
	return !slices.ContainsFunc(list[:font.count], func(s shown) bool { return rune(s.character) == character })
}
