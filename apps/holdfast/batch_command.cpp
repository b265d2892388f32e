#include "batch_stream.hpp"
#include "groups.hpp"
#include "input.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

namespace {

key::scheme scheme_of(std::string_view word) {
  if (word == "failover") return key::scheme::failover;
  if (word == "cachekit-auto") return key::scheme::cachekit_auto;
  return word == "interop" ? key::scheme::interop : key::scheme::interop_value;
}

key::dialect dialect_of(std::string_view word) {
  if (word == "py_0_17") return key::dialect::py_0_17;
  return word == "seed" ? key::dialect::seed : key::dialect::current;
}

/// Warnings may come once per type and point: enough of them to see what is wrong, no more.
class bounded_warnings {
 public:
  explicit bounded_warnings(console& io) : io_(&io) {}

  void operator()(std::string_view point, std::string_view type) {
    if (count_ > most) return;
    if (++count_ > most) {
      io_->warn("more types print as their hash code; they are not listed");
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
  command at = key.add("batch", "Many keys at once: JSON Lines in, JSON Lines out");
  at.about(
      "Each line is one case and gets exactly one line, in order, with the same id: the key, or what was wrong with the case.\n"
      "A bad case never stops the stream; a blank line is a bad case. A line has at most 64 MiB.\n"
      "Exit code 0 means that the whole input was read, not that every case was good.");
  at.examples(
      "echo '{\"id\":1,\"namespace\":\"users\",\"operation\":\"get\",\"args\":[{\"t\":\"int\",\"v\":\"42\"}]}' | holdfast key batch "
      "--scheme interop\n"
      "echo '{\"id\":2,\"name\":\"country\",\"args\":[{\"t\":\"str\",\"v\":\"FR\"}]}' | holdfast key batch --scheme failover --style "
      "exact\n"
      "holdfast key batch --scheme cachekit-auto --dialect py_0_17 cases.jsonl > keys.jsonl");
  const option scheme =
      at.value("--scheme", "", "What to make of each case").one_of({"failover", "cachekit-auto", "interop", "interop-value"}).required();
  const option dialect = at.value("--dialect", "", "cachekit-auto only").one_of({"current", "py_0_17", "seed"});
  const option style = at.value("--style", "", "failover only").one_of({"escaped", "exact"});
  const option file = at.positional("FILE", "Where the cases are; standard input if there is none, or -").file();

  at.run([=](console& io) {
    const input_file from(file.text("-"));
    if (from.is_terminal()) {
      io.err << "holdfast: reading cases from the terminal, one a line; end with Ctrl-D\n";
      io.err.flush();
    }
    key::batch_options options;
    options.scheme = scheme_of(scheme.text());
    options.dialect = dialect_of(dialect.text());
    options.style = style.text() == "exact" ? key::style::exact : key::style::escaped;
    options.on_unstable = bounded_warnings(io);
    run_batch(std::move(options), from, io.out);
    return exit_fine;
  });
}

}  // namespace holdfast::cli
