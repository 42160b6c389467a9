// Package dsn hides the secrets of a data source name, which drivers repeat in their
// errors.
package dsn

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hidden stands for what an error does not show.
const hidden = "xxxxx"

// Redact returns an error with the text of err, in which hidden parts of a DSN are
// replaced by xxxxx. If the DSN is well-formed, these are its passwords and the values
// of all settings but a few that are known to be harmless. Otherwise a password may be
// anywhere, and the error shows no part of the DSN. The error wraps
// nothing, because what it wrapped would show the secrets.
func Redact(dsn string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, s := range variants(secrets(dsn)) {
		text = replace(text, s)
	}
	return errors.New(text)
}

// Hide returns err, or an error without the DSN that its text may show: the driver could
// not parse the DSN, or took a part of the password for the host. The caller does not know
// the DSN.
func Hide(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok { // of lib/pq
		return Redact(u.URL, err)
	}
	if source := sourceOf(err); source != "" {
		return Redact(source, err)
	}
	text := unread.ReplaceAllString(beforeAt.ReplaceAllString(withoutValues(err), hidden+"@"), "${1}"+hidden+"${2}")
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// withoutValues returns the text of err, in which names of hosts that no host can have, and numbers that are none, are
// hidden: they may be parts of a password.
func withoutValues(err error) string {
	text := err.Error()
	var hide func(error)
	hide = func(err error) {
		switch e := err.(type) { //nolint:errorlint // each error of the tree is looked at
		case *net.DNSError:
			if !hostName.MatchString(e.Name) {
				text = strings.ReplaceAll(text, "lookup "+e.Name, "lookup "+hidden)
			}
		case *strconv.NumError:
			text = strings.ReplaceAll(text, strconv.Quote(e.Num), strconv.Quote(hidden))
		}
		switch e := err.(type) { //nolint:errorlint // and those that it wraps
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil {
				hide(inner)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				hide(inner)
			}
		}
	}
	hide(err)
	return text
}

var (
	hostName = regexp.MustCompile(`^[\pL\pN_.-]+$`)
	beforeAt = regexp.MustCompile("[^\\s\"'`]+@")
	unread   = regexp.MustCompile(`^(missing "=" after ").*(" in connection info string)$`) // of lib/pq
)

// sourceOf returns the DSN of an error of pgx that could not parse it, or "". It recognizes
// the type by its name, so that programs on other drivers do not link pgx.
func sourceOf(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.ValueOf(err)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			continue
		}
		v = v.Elem()
		if t := v.Type(); t.PkgPath() == "github.com/jackc/pgx/v5/pgconn" && t.Name() == "ParseConfigError" {
			return v.FieldByName("ConnString").String()
		}
	}
	return ""
}

// HideIn hides the passwords of DSNs in a text that repeats what a user has typed. Examples
// with user:password stay.
func HideIn(text string) string {
	return typed.ReplaceAllStringFunc(text, func(source string) string {
		if strings.Contains(source, example) {
			return source
		}
		return typed.ReplaceAllString(source, "${1}${3}"+hidden+"${2}${4}")
	})
}

const example = "user:password@"

var typed = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)\S*(@)|([^\s"':@]+:)\S*(@[a-z0-9]+\()`)

var (
	urlForm   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	restForm  = regexp.MustCompile(`^[^:@/?#\s]+(?::([^:@/?#\s]*))?@((?:[A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?(?:,(?:[A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?)*)(?:/[A-Za-z0-9_.-]*)?(?:\?([^@?#]*))?$`) // of a URL
	mysqlForm = regexp.MustCompile(`^[^:@]*(?::(.*))?@[a-z0-9]+\([^()@]*\)/[^/?@]*(?:\?([^@?]*))?$`)
	fileForm  = regexp.MustCompile(`^file:[^?@]*(?:\?([^@?]*))?$`)
	// Setting matches one setting of a DSN of the form key=value ….
	Setting = regexp.MustCompile(`\s*([A-Za-z0-9_.]+)\s*=\s*('(?:\\.|[^'\\])*'|(?:\\.|[^\s'\\])(?:\\.|[^\s\\])*)?(?:\s+|$)`)
)

var (
	name    = regexp.MustCompile(`^[^:@\s]*$`) // a DSN in the wrong place has one of these
	address = regexp.MustCompile(`^[^@\s]*$`)
	number  = regexp.MustCompile(`^[0-9]{1,5}$`)
	keyword = regexp.MustCompile(`^(true|false|any|primary|standby|read-write|read-only|disable|allow|prefer|require|verify-ca|verify-full|system|ro|rw|rwc|memory|shared|private|immediate)$`)
)

// harmless are the settings whose values an error may show if they match. Any other
// value that a driver refuses may have been meant for something else.
var harmless = map[string]*regexp.Regexp{
	"host": address, "hostaddr": address, "user": name, "dbname": name, "database": name, "search_path": name,
	"application_name": name, "port": number, "connect_timeout": number,
	"sslmode": keyword, "sslcertmode": keyword, "sslrootcert": keyword, "require_auth": keyword, "channel_binding": keyword,
	"target_session_attrs": keyword, "parseTime": keyword, "mode": keyword, "cache": keyword, "_txlock": keyword,
}

// shown reports whether an error may show the value of a setting.
func shown(name, value string) bool {
	allowed := harmless[name]
	return allowed != nil && allowed.MatchString(value)
}

// secrets lists the parts of a DSN that an error must not show.
func secrets(dsn string) (list []string) {
	switch {
	case urlForm.MatchString(dsn):
		scheme := urlForm.FindString(dsn)
		if m := restForm.FindStringSubmatch(dsn[len(scheme):]); m != nil {
			if values, ok := ofQuery(m[3]); ok {
				if m[1] == "" && strings.Contains(m[0], ":@") {
					m[1] = m[2] // a password may begin with @
				}
				return append(values, m[1])
			}
		}
		return []string{dsn[len(scheme):]}
	case mysqlForm.MatchString(dsn):
		m := mysqlForm.FindStringSubmatch(dsn)
		if values, ok := ofQuery(m[2]); ok {
			return append(values, m[1])
		}
	case fileForm.MatchString(dsn):
		if values, ok := ofQuery(fileForm.FindStringSubmatch(dsn)[1]); ok {
			return values
		}
	case Setting.ReplaceAllString(dsn, "") == "":
		for _, m := range Setting.FindAllStringSubmatch(dsn, -1) {
			if !shown(m[1], m[2]) {
				list = append(list, strings.Trim(m[2], "'"))
			}
		}
		return list
	}
	return []string{dsn}
}

// ofQuery lists the values of a query that are not known to be harmless. It reports
// whether the query is well-formed.
func ofQuery(query string) (list []string, ok bool) {
	if query == "" {
		return nil, true
	}
	for setting := range strings.SplitSeq(query, "&") {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || strings.ContainsAny(value, "/#") {
			return nil, false
		}
		if !shown(name, value) {
			list = append(list, value)
		}
	}
	return list, true
}

var word = regexp.MustCompile(`[A-Za-z0-9_$%!~.-]+`)

// variants lists the forms in which secrets may stand in an error: as they are,
// unescaped, quoted, and in parts, the longest first.
func variants(secrets []string) (list []string) {
	for _, secret := range secrets {
		forms := []string{secret, strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(secret)}
		for _, unescape := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
			if plain, err := unescape(secret); err == nil {
				forms = append(forms, plain)
			}
		}
		for _, form := range forms {
			quoted := strconv.Quote(form)
			list = append(list, form, quoted[1:len(quoted)-1])
			for _, part := range strings.FieldsFunc(form, func(r rune) bool { return strings.ContainsRune(` @:/?#&=()'"`, r) }) {
				list = append(list, part)
				list = append(list, word.FindAllString(part, -1)...)
			}
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(list)
}

// replace hides a part of a secret in a text. Short parts are hidden where they are
// words of their own: an error in which each letter a is hidden would be useless.
func replace(text, part string) string {
	if part == "" {
		return text
	}
	if len(part) > 3 {
		return strings.ReplaceAll(text, part, hidden)
	}
	alone, err := regexp.Compile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(part) + `($|[^A-Za-z0-9])`)
	if err != nil {
		return hidden
	}
	return alone.ReplaceAllString(text, "${1}"+hidden+"${2}")
}
