package software

import (
	"regexp"
	"strconv"
	"strings"
)

// version is a release number in comparable form.
type version struct {
	number [4]int
	// pre is negative for candidates and development builds (they sort before
	// the release), post counts post-releases, patch the post-release of a
	// candidate.
	pre, post, patch int
}

var versionForm = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:\.(\d{1,4}))?(?:[-.]?(rc|dev|a|b|alpha|beta)\.?(\d{0,6}))?(?:\.?(?:post|pre)(\d{1,4}))?`)

// parseVersion reads a release number at the start of s and returns its text.
func parseVersion(s string) (version, string, bool) {
	m := versionForm.FindStringSubmatch(s)
	if m == nil {
		return version{}, "", false
	}
	var v version
	for i := range v.number {
		v.number[i], _ = strconv.Atoi(m[1+i])
	}
	post, _ := strconv.Atoi(m[7])
	if m[5] != "" {
		n, _ := strconv.Atoi(m[6])
		v.pre = n - 1_000_000
		if m[5] == "dev" {
			v.pre -= 1_000_000
		}
		v.patch = post
	} else {
		v.post = post
	}
	return v, strings.TrimPrefix(m[0], "v"), true
}

// less orders release numbers; candidates come before their release.
func (v version) less(o version) bool {
	for i := range v.number {
		if v.number[i] != o.number[i] {
			return v.number[i] < o.number[i]
		}
	}
	switch {
	case v.pre != o.pre:
		return v.pre < o.pre
	case v.post != o.post:
		return v.post < o.post
	}
	return v.patch < o.patch
}
