// Package sealed encrypts and compresses the payloads and results of tasks: a codec for
// falldue's Config.Codec.
//
//	codec, err := sealed.New(sealed.Key{ID: "2026-11", Secret: secret})
//	q, err := falldue.New(db, falldue.Config{Codec: codec})
//
// To seal data is to compress it with DEFLATE and encrypt it with AES-GCM under a random nonce. The
// data is authenticated together with its place: the task's kind, the column (payload or
// result) and, for a result, the task's ID. Data that is copied to another place cannot be
// opened. A payload is sealed before its task has an ID, and can be opened in any task of
// its kind. The stored data is a JSON string: "fd1:", the ID of the key, ":" and the nonce
// and the sealed data in base64.
//
// To change the key, first add the new key after the old key in all processes. Then all processes can open data of both
// keys. Next, put the new key first. Remove the old key when no task needs it any more. An attempt whose key is missing
// fails with an error that names the key, and the task is retried under its policy. Seal at most 2³² payloads and
// results with one key. The page docs/sealed.md explains the steps and the errors.
//
// Unique tasks are compared by a hash that needs a secret ([Codec.Hash]).
//
// The length of the stored data shows how well the data could be compressed. Errors that handlers return, messages of
// progress, metadata, task keys and names are stored unencrypted.
package sealed

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/falldue/falldue"
)

// Key is an AES key.
type Key struct {
	// ID names the key in the stored data: 1 to 32 of A-Z a-z 0-9 . _ -.
	ID string
	// Secret has 16, 24 or 32 random bytes, for AES-128, AES-192 or AES-256.
	Secret []byte
}

// ErrUnknownKey means that data was sealed with a key that the codec does not have. [Codec.Decode]
// returns it, wrapped.
var ErrUnknownKey = errors.New("sealed: unknown key")

// Codec seals payloads and results. It is safe for concurrent use.
type Codec struct {
	ids    []string // the one to seal with first
	aeads  map[string]cipher.AEAD
	hashes []byte // the secret of hashes
	strict bool
}

var validID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// New returns a codec that seals with the first key, and opens data that was sealed with any of the keys. It returns an
// error if there is no key, or if a key is invalid.
func New(keys ...Key) (*Codec, error) {
	c := &Codec{aeads: map[string]cipher.AEAD{}}
	for _, k := range keys {
		if !validID.MatchString(k.ID) {
			return nil, fmt.Errorf("sealed: key ID %.33q: must be 1 to 32 of A-Z a-z 0-9 . _ -", k.ID)
		}
		if c.aeads[k.ID] != nil {
			return nil, fmt.Errorf("sealed: two keys have the ID %q", k.ID)
		}
		block, err := aes.NewCipher(k.Secret)
		if err != nil {
			return nil, fmt.Errorf("sealed: the secret of key %q has %d bytes: must be 16, 24 or 32", k.ID, len(k.Secret))
		}
		if c.aeads[k.ID], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("sealed: key %q: %w", k.ID, err)
		}
		c.ids, c.hashes = append(c.ids, k.ID), bytes.Clone(k.Secret)
	}
	if len(c.ids) == 0 {
		return nil, errors.New("sealed: no key")
	}
	return c, nil
}

// Strict returns a copy of c. Its Decode refuses data that is not sealed, so that workers run only tasks from processes
// with a key. Use Strict when no task is left that was enqueued without a codec.
func (c *Codec) Strict() *Codec {
	strict := *c
	strict.strict = true
	return &strict
}

// HashWith returns a copy of c whose Hash uses a secret of 16 bytes or more, which stays the
// same when keys change. It panics if the secret is shorter.
func (c *Codec) HashWith(secret []byte) *Codec {
	if len(secret) < 16 {
		panic(fmt.Sprintf("sealed: a secret of %d bytes for hashes: must be 16 or more", len(secret)))
	}
	hashing := *c
	hashing.hashes = bytes.Clone(secret)
	return &hashing
}

// Hash returns the HMAC-SHA-256 of the data by which a task is unique, so an attacker without the secret cannot find
// the data by hashing guesses. The secret belongs to the last key, unless [Codec.HashWith] sets a different secret.
// Processes with different secrets do not recognize each other's unique tasks: call HashWith before you remove the last
// key.
func (c *Codec) Hash(data []byte) []byte {
	own := hmac.New(sha256.New, c.hashes) // of the secret, which also seals
	own.Write([]byte("falldue unique keys"))
	h := hmac.New(sha256.New, own.Sum(nil))
	h.Write(data)
	return h.Sum(nil)
}

// mark begins what is stored.
const mark = "fd1:"

// bound returns the additional data that authenticates a place. The kind is last, since only
// the kind can have any text.
func bound(p falldue.Place) []byte {
	return fmt.Appendf(nil, "%s %d %s", p.Column, p.TaskID, p.Kind)
}

// name describes the data of a place in errors.
func name(p falldue.Place) string {
	if p.TaskID != 0 {
		return fmt.Sprintf("the %s of task %d of kind %q", p.Column, p.TaskID, p.Kind)
	}
	return fmt.Sprintf("the %s of kind %q", p.Column, p.Kind)
}

// Encode seals data with the first key.
func (c *Codec) Encode(p falldue.Place, data []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	box := c.aeads[c.ids[0]].Seal(nil, nil, packed.Bytes(), bound(p)) //nolint:gosec // it draws a nonce
	return []byte(`"` + mark + c.ids[0] + ":" + base64.RawURLEncoding.EncodeToString(box) + `"`), nil
}

// maxData is the greatest length of data, as for falldue's payloads.
const maxData = 64 << 20

// Decode opens data that Encode has sealed for the same place. If stored is JSON that is not sealed, Decode
// returns it unchanged or, if c is [Codec.Strict], returns an error.
func (c *Codec) Decode(p falldue.Place, stored []byte) ([]byte, error) {
	var text string
	if json.Unmarshal(stored, &text) != nil || !strings.HasPrefix(text, mark) {
		if c.strict {
			return nil, fmt.Errorf("sealed: %s is not sealed", name(p))
		}
		return stored, nil
	}
	id, box, _ := strings.Cut(strings.TrimPrefix(text, mark), ":")
	aead := c.aeads[id]
	if aead == nil {
		return nil, fmt.Errorf("%w %.33q of %s; the codec has %q", ErrUnknownKey, id, name(p), c.ids)
	}
	raw, err := base64.RawURLEncoding.DecodeString(box)
	if err != nil {
		return nil, fmt.Errorf("sealed: %s: %w", name(p), err)
	}
	packed, err := aead.Open(nil, nil, raw, bound(p))
	if err != nil {
		return nil, fmt.Errorf("sealed: %s cannot be opened with key %q: it was sealed with another secret or for another place, or changed since", name(p), id)
	}
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxData+1))
	if err != nil {
		return nil, fmt.Errorf("sealed: %s: %w", name(p), err)
	}
	if len(data) > maxData {
		return nil, fmt.Errorf("sealed: %s has more than %d bytes", name(p), maxData)
	}
	return data, nil
}
