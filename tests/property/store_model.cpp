#include "store_model.hpp"

#include <algorithm>
#include <array>
#include <sstream>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;
using operation = faulty_store::operation;

const std::array<const char*, 3> realms{"", "a", "b"};
const std::array<const char*, 2> names{"n", "a"};

std::string text_of(timestamp when) {
  return std::to_string(when.time_since_epoch().count() % 1'000'000'000);
}

std::string text_of(const std::optional<entry>& what) {
  if (!what) return "nothing";
  return what->realm + "/" + what->name + "/" + what->key + " as of " + text_of(what->as_of) +
         " until " + text_of(what->expire_on) + " " + what->payload.value_or("(tombstone)");
}

}  // namespace

model_run::model_run(std::uint64_t seed, make_stack make)
    : seed_(seed), random_(seed), make_(std::move(make)) {
  const std::array<std::size_t, 3> limits{4, 16, 1000};
  const std::array<std::size_t, 3> batches{1, 3, 500};
  const std::array<std::size_t, 3> remembered{1, 4, 16'384};
  const std::array<unsigned, 3> faults{0, 5, 30};
  const std::array<when_full, 3> policies{when_full::block, when_full::drop_oldest,
                                          when_full::write_through};
  options_.max_entries = limits.at(random(3));
  options_.batch_entries = batches.at(random(3));
  options_.full = policies.at(random(3));
  options_.refresh_after = random(2) == 0 ? 0ms : 2000ms;
  options_.max_held = random(2) == 0 ? 2 : 100;
  options_.remembered = remembered.at(random(3));
  options_.block_for = 0ms;  // nobody would make room while we wait
  options_.scan_flush = 0ms;
  options_.linger = 0ms;
  options_.jitter_seed = seed | 1U;
  options_.executor = world_.executor;
  options_.clock = world_.clock;
  fault_percent_ = faults.at(random(3));
  unknown_percent_ = random(2) == 0 ? 0 : 50;
  world_.faulty->before = [this](operation what, auto) { on_store(what, false); };
  world_.faulty->after = [this](operation what, auto) { on_store(what, true); };
  open();
}

void model_run::open() {
  stack_ = make_(world_, options_);
  if (!stack_.durable) stack_.durable = world_.bottom;
  lost_ = 0;
}

void model_run::fail(const std::string& what) const {
  throw broken_rule(what + " (seed " + std::to_string(seed_) + ", step " + std::to_string(step_) +
                    ")");
}

bool model_run::contains(const std::vector<state>& in, const state& what) {
  return std::find(in.begin(), in.end(), what) != in.end();
}

void model_run::add(std::vector<state>& to, const state& what) {
  if (!contains(to, what)) to.push_back(what);
}

model_run::identity model_run::any_key() {
  return {realms.at(random(realms.size())), names.at(random(names.size())),
          "k" + std::to_string(random(5))};
}

/// The payload says whose it is, so that one that crosses over is seen; there are few of each, so
/// that some stay unchanged.
entry model_run::any_entry(const identity& of, timestamp as_of) {
  const auto& [realm, name, key] = of;
  const std::array<std::chrono::microseconds, 4> lives{200ms, 2s, 30s, 1h};
  entry made{.name = name,
             .key = key,
             .as_of = as_of,
             .expire_on = std::max(as_of, world_.clock->now() + lives.at(random(4)))};
  made.realm = realm;
  made.payload = realm + "/" + name + "/" + key + "#" + std::to_string(chance(50) ? 0 : ++version_);
  made.payload_class = "c";
  return made;
}

/// In two statements: compilers evaluate arguments in orders of their own, and a seed means the
/// same run with each of them.
entry model_run::any_entry() {
  const auto of = any_key();
  return any_entry(of, any_time());
}

/// What has expired may be gone: a cleaner took it, or it was never written because it expired in
/// the queue.
void model_run::close_over_expiry(std::vector<state>& of) const {
  const auto now = world_.clock->now();
  if (std::any_of(of.begin(), of.end(),
                  [now](const state& each) { return each && each->expire_on < now; }))
    add(of, std::nullopt);
}

void model_run::change(const identity& which, const std::function<void(state&)>& how) {
  auto& known = model_[which];
  close_over_expiry(known.now);
  std::vector<state> after;
  for (state each : known.now) {
    how(each);
    add(after, each);
  }
  known.now = std::move(after);
  for (const state& each : known.now) add(known.since, each);
}

void model_run::put_into(const entry& e) {
  change({e.realm, e.name, e.key}, [&e](state& there) {
    if (!there || e.as_of >= there->as_of) there = e;
  });
  add(model_[{e.realm, e.name, e.key}].offered, e);
}

void model_run::expect(const identity& which, const state& got, const char* where) {
  auto& known = model_[which];
  close_over_expiry(known.now);
  const auto now = world_.clock->now();
  if (contains(known.now, got)) {
    // Memory in front may still have what has expired and is gone below, and does not know yet what
    // another machine wrote.
    const auto hidden = [&](const entry& each) {
      return (each.expire_on < now && (!got || got->expire_on < now)) ||
             (each.as_of <= known.foreign && (!got || got->as_of < each.as_of));
    };
    std::erase_if(known.now, [&](const state& each) {
      return each != got && !(stack_.freshness > 0us && each && hidden(*each));
    });
    return;
  }
  std::ostringstream text;
  text << where << " of " << std::get<0>(which) << "/" << std::get<1>(which) << "/"
       << std::get<2>(which) << " gave " << text_of(got) << " at " << text_of(now) << "; allowed:";
  for (const state& each : known.now) text << " [" << text_of(each) << "]";
  for (const outdated_version& each : known.outdated)
    text << " [to " << text_of(each.last_served) << ": " << text_of(each.value) << "]";
  fail(text.str());
}

/// The answer of a find: what is there, or what memory in front may still give instead.
void model_run::expect_found(const identity& which, const state& got, const char* where) {
  auto& known = model_[which];
  close_over_expiry(known.now);
  const auto now = world_.clock->now();
  const bool outdated = std::any_of(
      known.outdated.begin(), known.outdated.end(),
      [&](const outdated_version& each) { return got == each.value && now <= each.last_served; });
  if (contains(known.now, got) || !outdated) expect(which, got, where);
  if (!got) return;
  known.newest_known = std::max(known.newest_known, got->as_of);
  std::erase_if(known.outdated,
                [&got](const outdated_version& each) { return each.value.as_of < got->as_of; });
}

/// Memory in front may have this version, and takes it for right since that moment.
void model_run::may_be_in_front(states& of, const entry& value, timestamp since) const {
  if (stack_.freshness > 0us)
    of.outdated.push_back({.value = value, .last_served = since + stack_.freshness});
}

/// In the middle of an operation of the store at the bottom: what is in flight is neither here nor
/// there.
void model_run::on_store(operation what, bool happened) {
  if (quiet_) return;
  const bool writes = what == operation::put || what == operation::erase;
  if (writes && chance(20)) look(any_key());
  if (what == operation::find && happened && finding_ && chance(10)) interfere();
  if (!chance(fault_percent_)) return;
  if (happened && !writes) return;
  if (what == operation::find) find_failed_ = true;
  if (writes && chance(unknown_percent_)) throw error(errc::unavailable, "an unknown fault");
  throw error(errc::unavailable, "a fault", {.transient = !happened, .in_doubt = happened});
}

void model_run::look(const identity& which) {
  const auto& [realm, name, key] = which;
  quiet_ = true;
  if (std::find(in_progress_.begin(), in_progress_.end(), which) == in_progress_.end()) {
    if (chance(50)) recall(which);
    expect_found(which, stack_.top->find({name, realm}, key), "a find during a write");
  } else {
    (void)stack_.top->find({name, realm}, key);
  }
  quiet_ = false;
}

/// A find has its answer, but has not returned: now somebody erases or replaces what it found.
void model_run::interfere() {
  const auto which = *finding_;
  quiet_ = true;
  ++interfered_;
  if (chance(70)) erase(which);
  else put({any_entry(which, any_time())});
  quiet_ = false;
}

void model_run::put(const std::vector<entry>& what) {
  for (const entry& each : what) in_progress_.emplace_back(each.realm, each.name, each.key);
  std::optional<error> failure;
  try {
    stack_.top->put(what);
  } catch (const error& e) {
    failure = e;
  }
  in_progress_.clear();
  // Refused for want of room: nothing happened. Written through by the caller, and failed: it may
  // have.
  if (failure && failure->code() == errc::timeout) return;
  for (const entry& each : what) {
    auto& known = model_[{each.realm, each.name, each.key}];
    const auto before = known.now;
    put_into(each);
    for (const state& one : before) {
      if (failure) add(known.now, one);
    }
    // What was acknowledged replaces whatever is in front. It is in front itself unless this
    // process knows something newer.
    if (!failure)
      std::erase_if(known.outdated,
                    [&each](const outdated_version& one) { return one.value.as_of <= each.as_of; });
    if (each.as_of >= known.newest_known) may_be_in_front(known, each, each.as_of);
    if (!failure) known.newest_known = std::max(known.newest_known, each.as_of);
  }
}

void model_run::erase(const identity& which) {
  const auto& [realm, name, key] = which;
  auto& known = model_[which];
  close_over_expiry(known.now);
  const state& one = known.now.at(random(known.now.size()));
  const timestamp version = one && chance(80) ? one->as_of : any_time();
  const auto is_it = [version](const state& each) { return each && each->as_of == version; };
  const auto before = known.now;
  bool erased = false;
  try {
    erased = stack_.top->erase({name, realm}, key, version);
  } catch (const error&) {
    change(which, [&](state& there) {
      if (is_it(there)) there.reset();
    });
    for (const state& each : before) add(known.now, each);
    return;
  }
  if (!find_failed_ && stack_.freshness == 0us) {
    if (erased && std::none_of(before.begin(), before.end(), is_it))
      fail("an erase said that it removed what was not there");
    if (!erased && std::all_of(before.begin(), before.end(), is_it))
      fail("an erase did not see what was there");
  }
  change(which, [&](state& there) {
    if (is_it(there)) there.reset();
  });
  // Whether it was there or not: memory in front has forgotten the key.
  known.outdated.clear();
  known.newest_known = {};
}

void model_run::find(const identity& which) {
  const auto& [realm, name, key] = which;
  auto& known = model_[which];
  close_over_expiry(known.now);
  const auto before = known.now;
  const auto newest_known = known.newest_known;
  const auto interfered = interfered_;
  finding_ = which;
  state got;
  std::optional<error> failure;
  try {
    got = stack_.top->find({name, realm}, key);
  } catch (const error& e) {
    failure = e;
  }
  finding_.reset();
  if (failure) {
    if (!find_failed_) fail(std::string("a find failed: ") + failure->what());
    return;
  }
  // Served from the queue or from memory, since the store failed: right as far as this machine
  // knows.
  if (find_failed_ && got && got->as_of <= known.foreign) {
    if (!contains(known.now, got) && got->as_of < newest_known) {
      fail("while the store failed a find gave " + text_of(got) +
           "; this process has put or found a version as of " + text_of(newest_known));
    }
    return may_be_in_front(known, *got, world_.clock->now());
  }
  // What happened in between may be seen or not.
  if (interfered != interfered_ && contains(before, got)) return;
  expect_found(which, got, "a find");
}

/// What memory has: what a find may give, or what is right as far as this process knows.
void model_run::recall(const identity& which) {
  const auto& [realm, name, key] = which;
  auto& known = model_[which];
  close_over_expiry(known.now);
  const auto got = stack_.top->find_in_memory({name, realm}, key);
  ++done_[got.current ? "current" : got.entry ? "not current" : "not in memory"];
  if (!got.current && !got.entry) return;
  const auto now = world_.clock->now();
  const bool in_front = std::any_of(known.outdated.begin(), known.outdated.end(), [&](auto& each) {
    return got.entry == each.value && (!got.current || now <= each.last_served);
  });
  // Another machine's, of which this process has not heard: what waits here may be given instead.
  const bool unheard_of = std::any_of(known.now.begin(), known.now.end(), [&](const state& each) {
    return each && each->as_of <= known.foreign && each->as_of > known.newest_known;
  });
  const bool newest_here = unheard_of && stack_.behind->numbers().pending > 0 &&
                           (!got.entry || (got.entry->as_of >= known.newest_known &&
                                           contains(known.offered, got.entry)));
  if (!contains(known.now, got.entry) && !in_front && !newest_here)
    expect(which, got.entry, got.current ? "memory, as current," : "memory");
  if (!got.entry) return;
  known.newest_known = std::max(known.newest_known, got.entry->as_of);
  std::erase_if(known.outdated, [&got](const outdated_version& each) {
    return each.value.as_of < got.entry->as_of;
  });
}

void model_run::scan() {
  const std::string realm = realms.at(random(realms.size()));
  const std::string name = names.at(random(names.size()));
  entry_page page;
  std::uint64_t count = 0;
  try {
    page = stack_.top->find_all({name, realm}, 100);
    quiet_ = true;
    count = stack_.top->count({name, realm});
    quiet_ = false;
  } catch (const error&) {
    quiet_ = false;
    return;
  }
  if (count != page.entries.size()) fail("count and find_all do not agree");
  for (const entry& each : page.entries) {
    if (each.realm != realm || each.name != name) fail("a scan crossed over to " + text_of(each));
  }
  for (int k = 0; k < 5; ++k) {
    const identity which{realm, name, "k" + std::to_string(k)};
    const auto found = std::find_if(page.entries.begin(), page.entries.end(),
                                    [&](const entry& e) { return e.key == std::get<2>(which); });
    expect(which, found == page.entries.end() ? state{} : state{*found}, "a scan");
  }
}

void model_run::expire() {
  const auto before = world_.clock->now();
  try {
    (void)stack_.top->expire(before, 1'000);
  } catch (const error&) {
    return;
  }
  for (auto& [which, known] : model_) {
    change(which, [before](state& there) {
      if (there && there->expire_on < before) there.reset();
    });
  }
}

void model_run::loosen_when_lost() {
  const auto numbers = stack_.behind->numbers();
  const auto lost = numbers.dropped + numbers.failed;
  if (std::exchange(lost_, lost) == lost) return;
  for (auto& [which, known] : model_) {
    // Without what was dropped another one may have stayed.
    for (const state& each : known.offered) add(known.since, each);
    for (const state& each : known.since) add(known.now, each);
  }
}

void model_run::flush() {
  // Not the report's own answer to what was dropped before: the model has taken that into account.
  (void)stack_.behind->flush(world_.clock->steady());
  world_.executor->run_all();
  const auto report = stack_.behind->flush(world_.clock->steady());
  loosen_when_lost();
  if (report.unsaved != 0 || report.in_flight != 0) return;
  for (auto& [which, known] : model_) {
    const auto& [realm, name, key] = which;
    const auto durable = stack_.durable->find({name, realm}, key);
    expect(which, durable, "after an acknowledged flush the store");
    known.since = known.now;
    known.offered.clear();
  }
}

void model_run::crash() {
  world_.executor->clear();
  stack_ = {};
  world_.executor->clear();
  open();
  for (auto& [which, known] : model_) {
    const auto& [realm, name, key] = which;
    const auto durable = stack_.durable->find({name, realm}, key);
    // An older one that a caller wrote by itself is all there is when the newer one was lost in the
    // queue.
    for (const state& each : known.offered) add(known.since, each);
    close_over_expiry(known.since);
    if (!contains(known.since, durable))
      fail("after a crash the store has " + text_of(durable) +
           ", which it never had, or had before the last flush");
    known.now = known.since = {durable};
    known.offered.clear();
    known.outdated.clear();
    known.newest_known = {};
    // The new process does not know it
    if (durable) known.foreign = std::max(known.foreign, durable->as_of);
  }
}

/// Another machine writes: something newer than all of ours at any time, anything while nothing is
/// on its way.
void model_run::elsewhere() {
  const auto which = any_key();
  const bool idle = stack_.behind->numbers().pending == 0;
  const auto one = any_entry(which, idle ? any_time() : world_.clock->now() + 1ms);
  auto& known = model_[which];
  for (const state& each : known.now) {
    if (each) may_be_in_front(known, *each, world_.clock->now());
  }
  known.foreign = std::max(known.foreign, one.as_of);
  stack_.durable->put(one);
  put_into(one);
  world_.clock->advance(2ms);
}

void model_run::check_numbers() {
  const auto n = stack_.behind->numbers();
  if (n.queued != n.coalesced + n.written + n.skipped + n.dropped + n.failed + n.pending)
    fail("the numbers do not add up");
  if (n.pending > options_.max_entries) fail("more is pending than may be");
  if (n.failed != n.quarantined) fail("something was refused for good");
  if (n.failed != 0 && (unknown_percent_ == 0 || stack_.freshness > 0us))
    fail("something was given up");
}

void model_run::step() {
  struct kind {
    const char* name;
    unsigned weight;
    std::function<void()> what;
  };
  const std::array<kind, 14> kinds{{
      {"put", 26, [this] { put({any_entry()}); }},
      {"put_many", 6,
       [this] {
         std::vector<entry> many;
         for (auto left = 1 + random(5); left > 0; --left) many.push_back(any_entry());
         put(many);
       }},
      {"tombstone", 4,
       [this] {
         auto one = any_entry();
         one.payload.reset();
         one.payload_class.clear();
         put({one});
       }},
      {"erase", 10, [this] { erase(any_key()); }},
      {"find", 22, [this] { find(any_key()); }},
      {"recall", 10, [this] { recall(any_key()); }},
      {"scan", 2, [this] { scan(); }},
      {"expire", 1, [this] { expire(); }},
      {"flush", 3, [this] { flush(); }},
      {"crash", 1, [this] { crash(); }},
      {"elsewhere", 3, [this] { elsewhere(); }},
      {"task", 12, [this] { (void)world_.executor->run_one(random_); }},
      {"time", 8,
       [this] {
         (void)world_.executor->advance(
             std::chrono::milliseconds(random(random(8) == 0 ? 3'000 : 40)));
       }},
      {"starve", 2, [this] { world_.clock->advance(std::chrono::milliseconds(random(500))); }},
  }};
  unsigned total = 0;
  for (const kind& each : kinds) total += each.weight;
  auto chosen = random(total);
  for (const kind& each : kinds) {
    if (chosen >= each.weight) {
      chosen -= each.weight;
      continue;
    }
    ++done_[each.name];
    find_failed_ = false;
    each.what();
    break;
  }
  loosen_when_lost();
  check_numbers();
}

void model_run::steps(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    ++step_;
    step();
  }
}

}  // namespace holdfast::test
