package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// member is a key of a JSON object with its value as it is written.
type member struct{ key, value []byte }

// members appends the members of a JSON object to dst. The text must be valid
// JSON.
func members(dst []member, text []byte) ([]member, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	for text = skipSpace(text[1:]); text[0] != '}'; {
		end := valueEnd(text)
		key := text[1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			var s string
			if err := json.Unmarshal(text[:end], &s); err != nil {
				return nil, err
			}
			key = []byte(s)
		}
		text = skipSpace(skipSpace(text[end:])[1:]) // the colon
		end = valueEnd(text)
		dst = append(dst, member{key, text[:end]})
		if text = skipSpace(text[end:]); text[0] == ',' {
			text = skipSpace(text[1:])
		}
	}
	return dst, nil
}

// keys returns the keys of the JSON object that a text begins with, as far as
// the text goes: it may be cut off or no JSON at all.
func keys(text []byte) []string {
	var out []string
	text = skipSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	for text = skipSpace(text[1:]); len(text) > 0 && text[0] == '"'; {
		end := valueEnd(text)
		if end > len(text) {
			break
		}
		key, err := strconv.Unquote(string(text[:end]))
		if err != nil {
			break
		}
		out = append(out, key)
		text = skipSpace(text[end:])
		if len(text) == 0 || text[0] != ':' {
			break
		}
		text = skipSpace(text[1:])
		if end = valueEnd(text); end >= len(text) {
			break
		}
		if text = skipSpace(text[end:]); len(text) == 0 || text[0] != ',' {
			break
		}
		text = skipSpace(text[1:])
	}
	return out
}

func skipSpace(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t' || text[0] == '\n' || text[0] == '\r') {
		text = text[1:]
	}
	return text
}

// valueEnd returns where the JSON value that a text begins with ends, beyond the
// text when it is cut off.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
			continue
		case ']', '}':
			depth--
			if depth < 0 { // what encloses a number or a word
				return i
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(text) + 1
}

var errNotList = errors.New("not a list of whole numbers")

// numbers calls yield with the elements of a JSON array as they are written. The
// text must be valid JSON. It fails on elements that are no numbers.
func numbers(text []byte, yield func([]byte) error) error {
	if len(text) == 0 || text[0] != '[' {
		return errNotList
	}
	text = skipSpace(text[1:])
	for text[0] != ']' {
		if c := text[0]; c != '-' && (c < '0' || c > '9') {
			return errNotList
		}
		end := valueEnd(text)
		if err := yield(text[:end]); err != nil {
			return err
		}
		if text = skipSpace(text[end:]); text[0] == ',' {
			text = skipSpace(text[1:])
		}
	}
	return nil
}

// identity reads a whole number of 64 bits; those below 0 are taken as their
// two's complement.
func identity(text []byte) (uint64, error) {
	n, negative := uint64(0), false
	if len(text) > 0 && text[0] == '-' {
		negative, text = true, text[1:]
	}
	if len(text) == 0 || len(text) > 20 {
		return 0, errNotList
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, errNotList
		}
		d := uint64(c - '0')
		if n > (1<<64-1-d)/10 {
			return 0, errors.New("a whole number of more than 64 bits")
		}
		n = n*10 + d
	}
	if negative {
		n = -n
	}
	return n, nil
}
