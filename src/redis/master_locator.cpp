#include "redis/master_locator.hpp"

#include "net/address.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

/// How long the address of the master is used without asking the Sentinels. A master that was
/// replaced, and has not noticed, gets writes no longer than this.
constexpr auto confirmed_time = std::chrono::seconds(1);
/// The same after Sentinels did not answer.
constexpr auto unconfirmed_pause = std::chrono::seconds(5);
/// Limits of a search while there is an address to work with.
constexpr auto max_confirm_time = std::chrono::milliseconds(500);
constexpr auto max_search_time = std::chrono::seconds(4);
constexpr auto silent_time = std::chrono::seconds(10);
constexpr std::size_t max_sentinels = 32;

/// Returns the value of a field in a list of names and values; null if it is missing.
const std::string* field_of(const reply& fields, std::string_view name) {
  if (!fields.is_list()) return nullptr;
  const auto& elements = fields.elements();
  for (std::size_t i = 0; i + 1 < elements.size(); i += 2) {
    if (elements[i].is_text() && elements[i].text() == name && elements[i + 1].is_text())
      return &elements[i + 1].text();
  }
  return nullptr;
}

std::optional<std::string> address_in(const reply& fields, const std::string& node) {
  const auto* host = field_of(fields, "ip");
  const auto* port = field_of(fields, "port");
  if (host == nullptr || port == nullptr) return std::nullopt;
  return net::parse_address(*host + ':' + *port, net::host_of(node));
}

[[noreturn]] void throw_strange_answer(const std::string& node) {
  throw error(errc::malformed, "Redis at " + node + " did not answer as a Sentinel does");
}

/// The answers of the Sentinels so far.
struct survey {
  std::size_t answers = 0;
  std::size_t sentinels = 1;  // that there are
  std::optional<sentinel_view> newest{};
  std::optional<error> problem{};
  bool definite = false;  // the problem is not that a Sentinel did not answer

  [[nodiscard]] bool has_majority() const noexcept { return answers > sentinels / 2; }
};

}  // namespace

std::vector<command> sentinel_questions(const std::string& master_name) {
  const auto question = [&](std::string_view name) {
    return command("SENTINEL").arg(name).arg(master_name).idempotent();
  };
  // The Sentinel that leads a failover names the new master here first.
  return {question("GET-MASTER-ADDR-BY-NAME"), question("MASTER").after_previous(),
          question("SENTINELS").after_previous()};
}

sentinel_view::sentinel_view(std::span<const reply> replies, const std::string& node,
                             const std::string& master_name) {
  const reply& address = replies.front().checked();
  if (address.is_nil())
    throw error(errc::invalid_argument, "the Sentinel at " + node + " monitors no master named '" +
                                            master_name + "'; check the name in the URL");
  if (!address.is_list() || address.elements().size() != 2 || replies.size() < 3)
    throw_strange_answer(node);
  const auto parsed = net::parse_address(
      address.elements()[0].text() + ':' + address.elements()[1].text(), net::host_of(node));
  const auto* const number = field_of(replies[1].checked(), "config-epoch");
  if (!parsed || number == nullptr) throw_strange_answer(node);
  master = *parsed;
  std::from_chars(number->data(), number->data() + number->size(), epoch);
  if (!replies[2].is_list()) return;  // to name the others is optional
  for (const auto& fields : replies[2].elements()) {
    if (auto other = address_in(fields, node)) others.push_back(std::move(*other));
  }
}

master_locator::master_locator(const settings& configured, node_query query, counters& counted)
    : settings_(configured), query_(std::move(query)), counters_(counted) {}

std::string master_locator::reachable(const std::string& announced) const {
  const auto& translate = settings_.options.translate;
  return translate ? translate(announced) : announced;
}

std::shared_ptr<const std::string> master_locator::current(steady::time_point deadline) {
  bool stale = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto now = steady::now();
    if (master_ && now < (stale_ ? next_refresh_ : confirm_at_)) return master_;
    stale = !master_ || stale_;
  }
  // To confirm an address, one thread asks and the others go on.
  std::unique_lock refresh_lock(refreshing_, std::defer_lock);
  const bool owns = stale ? refresh_lock.try_lock_until(deadline) : refresh_lock.try_lock();
  std::shared_ptr<const std::string> old;
  {
    const std::scoped_lock lock(mutex_);
    const auto now = steady::now();
    // The thread that asked before may have an answer.
    if (master_ && (!owns || now < (stale_ ? next_refresh_ : confirm_at_))) return master_;
    old = master_;
    stale = stale_;
  }
  if (!owns)
    throw error(errc::timeout, "the master of Redis was not found in time", {.transient = true});
  const auto limit = steady::now() + (stale ? steady::duration(max_search_time) : max_confirm_time);
  try {
    auto address = find(old ? std::min(deadline, limit) : deadline);
    ++counters_.refreshes;
    const std::scoped_lock lock(mutex_);
    if (!master_ || *master_ != address)
      master_ = std::make_shared<const std::string>(std::move(address));
    stale_ = false;
    const auto now = steady::now();
    next_refresh_ = now + std::chrono::milliseconds(50 + random_() % 50);
    if (!settings_.master_name.empty()) confirm_at_ = now + confirmed_time;
    return master_;
  } catch (const error&) {
    if (!old) throw;
    // The server may be there although no Sentinel is.
    const std::scoped_lock lock(mutex_);
    const auto now = steady::now();
    next_refresh_ = now + std::chrono::milliseconds(50 + random_() % 50);
    if (!settings_.master_name.empty()) confirm_at_ = now + unconfirmed_pause;
    stale_ = false;  // the old master is used again; if it fails, mark_stale starts a search
    return old;
  }
}

void master_locator::mark_stale(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  if (master_ && *master_ == address) stale_ = true;
}

void master_locator::mark_unresponsive(const std::string& node) {
  const std::scoped_lock lock(mutex_);
  unresponsive_[node] = steady::now() + silent_time;
}

/// Returns the addresses of the URL and the Sentinels that were learned. Sentinels are in random
/// order, so that many clients do not all ask the same one. Unresponsive nodes come last.
std::vector<std::string> master_locator::nodes_to_ask() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> nodes = settings_.addresses;
  if (!settings_.master_name.empty()) {
    for (const auto& address : learned_) {
      if (std::ranges::find(nodes, address) == nodes.end()) nodes.push_back(address);
    }
    std::shuffle(nodes.begin(), nodes.end(), random_);
  }
  const auto now = steady::now();
  std::erase_if(unresponsive_, [&](const auto& entry) { return entry.second < now; });
  std::vector<std::string> last;
  std::erase_if(nodes, [&](const std::string& address) {
    if (!unresponsive_.contains(address)) return false;
    last.push_back(address);
    return true;
  });
  nodes.insert(nodes.end(), last.begin(), last.end());
  return nodes;
}

std::string master_locator::find(steady::time_point deadline) {
  return settings_.master_name.empty() ? ask_servers(deadline) : ask_sentinels(deadline);
}

std::string master_locator::ask_sentinels(steady::time_point deadline) {
  survey result;
  query_(nodes_to_ask(), deadline, [&](const std::string& node, std::span<const reply> replies) {
    try {
      sentinel_view view(replies, node, settings_.master_name);
      ++result.answers;
      result.sentinels = std::max(result.sentinels, view.others.size() + 1);
      if (!result.newest || view.epoch > result.newest->epoch) result.newest = std::move(view);
    } catch (const error& problem) {
      if (problem.transient()) mark_unresponsive(node);
      if (!result.definite) result.problem = problem;
      result.definite = result.definite || !problem.transient();
      return next_question::ask;
    }
    return result.has_majority() ? next_question::enough : next_question::more;
  });
  if (!result.newest) {
    if (result.problem) throw error(*result.problem);
    throw error(errc::timeout, "no Sentinel answered in time", {.transient = true});
  }
  const std::scoped_lock lock(mutex_);
  if (result.newest->epoch < epoch_ && !result.has_majority())
    throw error(errc::unavailable,
                "the Sentinels that answer are a minority, and know only an older master",
                {.transient = true});
  epoch_ = result.newest->epoch;
  learned_.clear();
  for (const auto& announced : result.newest->others) {
    if (learned_.size() < max_sentinels) learned_.push_back(reachable(announced));
  }
  return reachable(result.newest->master);
}

/// The login of a connection refuses servers that are not masters.
std::string master_locator::ask_servers(steady::time_point deadline) {
  std::string master;
  std::optional<error> problem;
  query_(nodes_to_ask(), deadline, [&](const std::string& node, std::span<const reply> replies) {
    if (!replies.front().is_error()) {
      master = node;
      return next_question::enough;
    }
    // A reason that does not pass by itself is worth more than a server that is down.
    const error& refused = replies.front().problem();
    if (!problem || problem->transient()) problem = refused;
    return next_question::ask;
  });
  if (!master.empty()) return master;
  if (problem)
    throw error(problem->code(),
                "none of the addresses is that of a master; last: " + problem->message(),
                {.backend_code = problem->backend_code(), .transient = problem->transient()});
  throw error(errc::timeout, "none of the addresses answered in time", {.transient = true});
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
