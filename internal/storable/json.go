//go:build !goexperiment.jsonv2

package storable

import "encoding/json"

// toJSON returns the JSON of a value. For bytes that are not UTF-8 it has an escape that it
// has for no text, and [Check] refuses it.
func toJSON(v any) ([]byte, error) { return json.Marshal(v) }
