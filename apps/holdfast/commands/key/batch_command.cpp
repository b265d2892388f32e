// holdfast key batch.

#include "commands/groups.hpp"
#include "commands/key/batch_stream.hpp"
#include "commands/key/dialect.hpp"
#include "terminal/input.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

namespace {

key::scheme scheme_of(std::string_view word) {
  if (word == "failover") return key::scheme::failover;
  if (word == "cachekit-auto") return key::scheme::cachekit_auto;
  return word == "interop" ? key::scheme::interop : key::scheme::interop_value;
}

/// Prints the first warnings about unstable types. There may be one per type and point.
class bounded_warnings {
 public:
  explicit bounded_warnings(console& io) : io_(&io) {}

  void operator()(std::string_view point, std::string_view type) {
    if (count_ > most) return;
    if (++count_ > most) {
      io_->warn("more types print as their hash code and are not listed");
      return;
    }
    io_->warn(std::string(point) + ": " + std::string(type) +
              " prints as its hash code, which changes from run to run; give it a toString()");
  }

 private:
  static constexpr int most = 20;
  console* io_;
  int count_ = 0;
};

}  // namespace

void add_batch_command(command key) {
  command cmd = key.add("batch", "Compute many keys: JSON Lines in, JSON Lines out");
  cmd.about(
      "Each input line is one case. It gets exactly one output line, in order, with the same id: "
      "the key, or an error.\n"
      "An invalid case does not stop the stream; a blank line is invalid. A line has at most 64 "
      "MiB.\n"
      "Exit code 0 means that the whole input was read, not that every case is valid.");
  cmd.examples(
      "echo "
      "'{\"id\":1,\"namespace\":\"users\",\"operation\":\"get\",\"args\":[{\"t\":\"int\",\"v\":"
      "\"42\"}]}' | holdfast key batch --scheme interop\n"
      "echo '{\"id\":2,\"name\":\"country\",\"args\":[{\"t\":\"str\",\"v\":\"FR\"}]}' | holdfast "
      "key batch --scheme failover --style exact\n"
      "holdfast key batch --scheme cachekit-auto --dialect py_0_17 cases.jsonl > keys.jsonl");
  const option scheme = cmd.value("--scheme", "", "What to compute for each case")
                            .one_of({"failover", "cachekit-auto", "interop", "interop-value"})
                            .required();
  const option dialect = cmd.value("--dialect", "", "Version of the format, for cachekit-auto")
                             .one_of({"current", "py_0_17", "v1_0"}, {"seed"});
  const option style =
      cmd.value("--style", "", "Style of the keys, for failover").one_of({"escaped", "exact"});
  const option file =
      cmd.positional("FILE", "File with the cases; - or nothing: standard input").file();
  (void)cmd.flag("--json", "Print JSON Lines (always)");

  cmd.run([=](console& io) {
    const input_file cases(file.text("-"));
    if (cases.is_terminal()) {
      io.err << "holdfast: reading cases from the terminal, one per line; end with Ctrl-D\n";
      io.err.flush();
    }
    key::batch_options options;
    options.scheme = scheme_of(scheme.text());
    options.dialect = key_dialect(dialect.text());
    options.style = style.text() == "exact" ? key::style::exact : key::style::escaped;
    options.on_unstable = bounded_warnings(io);
    run_batch(std::move(options), cases, io.out);
    return exit_ok;
  });
}

}  // namespace holdfast::cli
