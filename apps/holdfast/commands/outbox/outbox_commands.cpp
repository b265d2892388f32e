// The group holdfast outbox, with its commands pause, resume, fsck and schema.

#include <holdfast/outbox.hpp>
#include <holdfast/outbox/sql.hpp>

#include "commands/groups.hpp"
#include "commands/outbox/location.hpp"
#include "commands/outbox/record_text.hpp"
#include "commands/schema_dialect.hpp"

#include <string>

namespace holdfast::cli {

namespace {

/// Adds pause or resume.
void add_pause(command group, const std::string& name, std::string_view summary, bool paused,
               void (outbox_admin::*function)() const) {
  command cmd = group.add(name, summary);
  cmd.examples("holdfast outbox " + name + " --outbox redis://127.0.0.1");
  const outbox_location location(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    (location.open(io).admin().*function)();
    if (json.is_set()) io.out << "{\"paused\":" << (paused ? "true" : "false") << "}\n";
    return exit_ok;
  });
}

void add_fsck(command group) {
  command cmd = group.add("fsck", "Check the data structures of an outbox");
  cmd.about(
      "Use it after a restore, or after keys were deleted by hand. Exit code 1 if there are "
      "inconsistencies that were not repaired.");
  cmd.examples(
      "holdfast outbox fsck --outbox redis://127.0.0.1\n"
      "holdfast outbox fsck --outbox redis://127.0.0.1 --repair");
  const outbox_location location(cmd);
  const option repair = cmd.flag("--repair", "Repair inconsistencies");
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto report = location.open(io).admin().check(repair.is_set());
    io.out << (json.is_set() ? check_report_json(report, repair.is_set())
                             : check_report_text(report, repair.is_set()));
    return report.well() || repair.is_set() ? exit_ok : exit_negative;
  });
}

void add_outbox_schema(command group) {
  command cmd = group.add("schema", "Print the SQL that creates the tables");
  cmd.about("The option --create-schema of other commands creates the tables as well.");
  cmd.examples(
      "holdfast outbox schema --dialect postgresql\n"
      "holdfast outbox schema --dialect mariadb --prefix '{shop}'");
  const option dialect = cmd.value("--dialect", "", "SQL dialect of the database")
                             .one_of({"sqlite", "postgresql", "mysql", "mariadb"})
                             .required();
  const option prefix = cmd.value(
      "--prefix", "P", "Name of the outbox, with a hash tag in braces (default {holdfast})");
  const option json = cmd.flag("--json", "Print the statements as one JSON object");
  cmd.run([=](console& io) {
    print_schema(io.out, outbox_schema(schema_dialect(dialect), prefix.text("{holdfast}")),
                 json.is_set());
    return exit_ok;
  });
}

}  // namespace

void add_outbox_commands(command root) {
  command group = root.add("outbox", "Publish, deliver and inspect events of an outbox");
  group.examples(
      "holdfast outbox publish --outbox sqlite:app.db --create-schema --type ticket.created --key "
      "ticket-7 --payload '{\"seat\":12}'\n"
      "holdfast outbox work --outbox sqlite:app.db --exec ./deliver --until-empty\n"
      "holdfast outbox explain --outbox sqlite:app.db ID");
  add_publish_commands(group);
  add_recur_commands(group);
  add_work_command(group);
  add_tail_command(group);
  add_inspect_commands(group);
  add_parked_commands(group);
  add_pause(group, "pause", "Stop deliveries by all workers; publishing continues", true,
            &outbox_admin::pause);
  add_pause(group, "resume", "Continue deliveries", false, &outbox_admin::resume);
  add_fsck(group);
  add_outbox_transfer(group);
  add_outbox_schema(group);
  add_outbox_doctor(group);
}

}  // namespace holdfast::cli
