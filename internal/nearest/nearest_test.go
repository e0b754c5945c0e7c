package nearest

import "testing"

func TestName(t *testing.T) {
	known := []string{"mi300x", "mi325x", "mi355x", "h100", "--max-concurrency", "gpt_oss_120B"}
	for _, tt := range []struct{ in, want string }{
		{"mi355", "mi355x"},
		{"MI-355X", "mi355x"},
		{"gpt-oss-120b", "gpt_oss_120B"},
		{"--max-concurency", "--max-concurrency"},
		{"h010", "h100"},
		{"completely-else", ""},
		{"", ""},
	} {
		if got := Name(tt.in, known); got != tt.want {
			t.Errorf("Name(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
