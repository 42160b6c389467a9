package sealed_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/sealed"
)

// keyOf returns the key with an ID. The variable has the secret in base64.
func keyOf(id, variable string) (sealed.Key, error) {
	secret, err := base64.StdEncoding.DecodeString(os.Getenv(variable))
	if err != nil {
		return sealed.Key{}, fmt.Errorf("%s: %w", variable, err)
	}
	return sealed.Key{ID: id, Secret: secret}, nil
}

// setKeys sets the variables that a deployment would set.
func setKeys() (unset func()) {
	variables := []string{"TASK_KEY_2025", "TASK_KEY_2026", "TASK_HASHES"}
	for _, name := range variables {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret)
		_ = os.Setenv(name, base64.StdEncoding.EncodeToString(secret))
	}
	return func() {
		for _, name := range variables {
			_ = os.Unsetenv(name)
		}
	}
}

func open() (db *sqlx.DB, closeDB func()) {
	folder, err := os.MkdirTemp("", "sealed-")
	if err != nil {
		log.Panic(err)
	}
	db = sqlx.MustConnect("sqlite", "file:"+filepath.ToSlash(filepath.Join(folder, "shop.db"))+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)&_txlock=immediate")
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
}

var pay = falldue.NewKind[string]("pay", falldue.KindConfig{})

// A queue with a codec stores no payload as it is.
func ExampleNew() {
	defer setKeys()()
	ctx := context.Background()
	db, closeDB := open()
	defer closeDB()

	key, err := keyOf("2026", "TASK_KEY_2026")
	if err != nil {
		log.Panic(err)
	}
	hashes, err := keyOf("hashes", "TASK_HASHES")
	if err != nil {
		log.Panic(err)
	}
	codec, err := sealed.New(key)
	if err != nil {
		log.Panic(err)
	}
	q, err := falldue.New(db, falldue.Config{Codec: codec.HashWith(hashes.Secret)})
	if err != nil {
		log.Panic(err)
	}
	if err := q.Migrate(ctx); err != nil {
		log.Panic(err)
	}
	receipt, err := pay.Enqueue(ctx, q, "card 4111")
	if err != nil {
		log.Panic(err)
	}

	var stored string
	if err := db.Get(&stored, "select payload from falldue_tasks"); err != nil {
		log.Panic(err)
	}
	fmt.Printf("%.10s\n", stored)
	task, err := q.Task(ctx, receipt.ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(string(task.Payload))
	// Output:
	// "fd1:2026:
	// "card 4111"
}

// A queue without a codec sees what is stored, and counts the tasks that need a key.
func ExampleNew_rotation() {
	defer setKeys()()
	ctx := context.Background()
	db, closeDB := open()
	defer closeDB()

	older, err := keyOf("2025", "TASK_KEY_2025")
	if err != nil {
		log.Panic(err)
	}
	newer, err := keyOf("2026", "TASK_KEY_2026")
	if err != nil {
		log.Panic(err)
	}
	before, err := sealed.New(older)
	if err != nil {
		log.Panic(err)
	}

	// First deploy: all processes open data of both keys, and seal with the old key.
	both, err := sealed.New(older, newer)
	if err != nil {
		log.Panic(err)
	}
	// Second deploy: all processes seal with the new key.
	after, err := sealed.New(newer, older)
	if err != nil {
		log.Panic(err)
	}

	for _, codec := range []*sealed.Codec{before, both, after} {
		q, err := falldue.New(db, falldue.Config{Codec: codec})
		if err != nil {
			log.Panic(err)
		}
		if err := q.Migrate(ctx); err != nil {
			log.Panic(err)
		}
		if _, err := pay.Enqueue(ctx, q, "card 4111"); err != nil {
			log.Panic(err)
		}
	}

	// Third deploy, when no task needs the old key: remove it.
	bare, err := falldue.New(db, falldue.Config{}) // without a codec, it sees the stored data
	if err != nil {
		log.Panic(err)
	}
	page, err := ops.New(bare).Tasks(ctx, ops.Filter{Match: `"fd1:2025:`})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(len(page.Tasks), "tasks need the key of 2025; more to look at:", page.Bounded || page.More)

	// A process that has lost a key says which.
	alone, err := sealed.New(newer)
	if err != nil {
		log.Panic(err)
	}
	q, err := falldue.New(db, falldue.Config{Codec: alone})
	if err != nil {
		log.Panic(err)
	}
	task, err := q.Task(ctx, page.Tasks[0].ID)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(errors.Is(task.DecodeError, sealed.ErrUnknownKey), task.DecodeError)
	// Output:
	// 2 tasks need the key of 2025; more to look at: false
	// true decode with the codec: sealed: unknown key "2025" of the payload of kind "pay"; the codec has ["2026"]
}

// A codec seals with its first key, and opens what was sealed with any of its keys.
func Example() {
	old, secret := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(old) // in a program, from where it keeps its secrets
	_, _ = rand.Read(secret)

	before, err := sealed.New(sealed.Key{ID: "2025", Secret: old})
	if err != nil {
		log.Panic(err)
	}
	after, err := sealed.New(sealed.Key{ID: "2026", Secret: secret}, sealed.Key{ID: "2025", Secret: old})
	if err != nil {
		log.Panic(err)
	}
	// falldue.New(db, falldue.Config{Codec: after}) does the rest.

	place := falldue.Place{Kind: "pay", Column: "payload"}
	stored, err := before.Encode(place, []byte(`{"card":"4111"}`))
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("%.10s\n", stored)
	data, err := after.Decode(place, stored)
	fmt.Println(string(data), err)
	_, err = before.Strict().Decode(place, []byte(`{"card":"1234"}`))
	fmt.Println(err)
	// Output:
	// "fd1:2025:
	// {"card":"4111"} <nil>
	// sealed: the payload of kind "pay" is not sealed
}

// Unique tasks need one secret for their hashes while keys come and go.
func ExampleCodec_HashWith() {
	key, hashes := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(key) // in a program, from where it keeps its secrets
	_, _ = rand.Read(hashes)

	codec, err := sealed.New(sealed.Key{ID: "2026", Secret: key})
	if err != nil {
		log.Panic(err)
	}
	codec = codec.HashWith(hashes)
	fmt.Println(len(codec.Hash([]byte("what tasks are unique by"))))
	// Output:
	// 32
}
