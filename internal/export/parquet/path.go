package parquet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
)

// nameMax bounds the length of a file's name in bytes, on the file systems in use.
const nameMax = 255

// noValue is Hive's name for a partition whose value is empty.
const noValue = "__HIVE_DEFAULT_PARTITION__"

// escaped are the characters besides control characters that Hive escapes in the names of partitions (Apache Hive,
// org.apache.hadoop.hive.common.FileUtils).
const escaped = "\"#%'*/:=?\\{[]^"

// folderOfPartition returns the name of the folder for all rows in which a column has a value. No value makes it lead to another
// folder. Values too long for a name are cut, and end in a checksum.
func folderOfPartition(column, value string) string {
	if value == "" {
		return column + "=" + noValue
	}
	name := column + "=" + escapePartitionValue(value)
	if len(name) <= nameMax {
		return name
	}
	sum := sha256.Sum256([]byte(value))
	const tail = 1 + 16 // ~ and 8 bytes of the checksum in hexadecimal
	return cutEscapedName(name, nameMax-tail) + "~" + hex.EncodeToString(sum[:8])
}

func escapePartitionValue(value string) string {
	var b strings.Builder
	for i, r := range value {
		size := utf8.RuneLen(r)
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(value[i:], "\ufffd"):
			b.WriteString("\ufffd")
		case size == 1 && (r < ' ' || r == 0x7f || strings.ContainsRune(escaped, r)):
			fmt.Fprintf(&b, "%%%02X", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// valueOfPartition returns the value of a partition from its folder's name.
func valueOfPartition(value string) string {
	if value == noValue {
		return ""
	}
	if text, err := url.PathUnescape(value); err == nil {
		return text
	}
	return value
}

// cutEscapedName cuts a name to at most some bytes, but not inside an escape or a character.
func cutEscapedName(name string, most int) string {
	name = name[:most]
	if at := strings.LastIndexByte(name, '%'); at > most-3 {
		return name[:at]
	}
	for !utf8.ValidString(name) {
		name = name[:len(name)-1]
	}
	return name
}

// pathOfTable returns the path for a table of a process: the same for each export of the same recording, and never that of another
// recording.
func pathOfTable(table string, p *tables.Facts) string {
	process := fmt.Sprint(p.PID)
	if p.PID == 0 {
		process = fmt.Sprint(p.Original)
	}
	return path.Join(table, folderOfPartition("host", p.Host), folderOfPartition("process", process),
		fmt.Sprintf("%s-%d.parquet", p.Recording, p.Original))
}
