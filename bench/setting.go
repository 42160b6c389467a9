package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// setting describes where and with what results were measured.
type setting struct {
	Date      string `json:"date"`
	Machine   string `json:"machine"`
	Server    string `json:"server"`
	Libraries string `json:"libraries"`
	Tasks     int    `json:"tasks"`
	Backlog   int    `json:"backlog"`
}

// sameButDate reports whether s and other differ in nothing but the date.
func (s setting) sameButDate(other setting) bool {
	s.Date = other.Date
	return s == other
}

func settingOf(ctx context.Context, c *config, srv *server) (setting, error) {
	s := setting{
		Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Libraries: libraries(),
		Tasks: c.tasks, Backlog: c.backlog,
	}
	options, err := srv.options(ctx)
	s.Server = srv.version + options
	return s, err
}

// machine describes the processor, its cores and the memory.
func machine() string {
	model := field("/proc/cpuinfo", "model name")
	if model == "" {
		model = runtime.GOARCH
	}
	text := fmt.Sprintf("%s, %d cores shared by the client and the server, %s", model, runtime.NumCPU(), runtime.GOOS)
	var kB int
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kB); err == nil {
		text += fmt.Sprintf(", %d GB", (kB+1<<19)>>20)
	}
	return text
}

// field returns the value of the first line of a file that begins with a name.
func field(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// libraries lists the versions of Go, the drivers and the peers.
func libraries() string {
	list := []string{runtime.Version()}
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if slices.Contains([]string{
			"github.com/lib/pq", "github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql", "modernc.org/sqlite",
			"github.com/riverqueue/river", "github.com/ThreeDotsLabs/watermill-sql/v3",
		}, m.Path) {
			list = append(list, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
		}
	}
	return strings.Join(list, ", ")
}

// options returns the settings of the server that affect the figures.
func (s *server) options(ctx context.Context) (string, error) {
	names := map[string][]string{
		postgres: {"fsync", "synchronous_commit", "shared_buffers"},
		mySQL:    {"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_buffer_pool_size"},
		mariaDB:  {"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_buffer_pool_size"},
	}[s.engine]
	text := ""
	for _, name := range names {
		query := "select @@" + name
		if s.engine == postgres {
			query = "show " + name
		}
		var value string
		if err := s.admin.GetContext(ctx, &value, query); err != nil {
			return "", err
		}
		text += ", " + name + " = " + value
	}
	if s.engine == sqlite {
		text = ", journal_mode = WAL, synchronous = FULL"
	}
	if s.engine == tiDB {
		text = tiDBStore(ctx, s.admin)
	}
	return text, nil
}

// tiDBStore says what a TiDB is made of, or nothing if it does not say so.
func tiDBStore(ctx context.Context, admin *sqlx.DB) string {
	rows, err := admin.QueryxContext(ctx, "show config where type = 'tidb' and name = 'store'")
	if err != nil {
		return ""
	}
	defer rows.Close()
	for rows.Next() {
		row := map[string]any{}
		if rows.MapScan(row) != nil {
			return ""
		}
		if value, ok := row["Value"].([]byte); ok {
			text := ", store = " + string(value)
			if string(value) != "tikv" {
				text += ", one process and not a cluster"
			}
			return text
		}
	}
	_ = rows.Err() // nothing is said then
	return ""
}
