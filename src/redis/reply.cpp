#include <holdfast/redis.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

std::string_view kind_of(const reply& what) {
  if (what.is_nil()) return "nothing";
  if (what.is_integer()) return "an integer";
  if (what.is_text()) return "text";
  if (what.is_list()) return "a list";
  return "an error";
}

}  // namespace

void reply::refuse(std::string_view wanted) const {
  if (const auto* problem = std::get_if<error>(&held_)) throw error(*problem);
  throw error(errc::malformed, "Redis answered with " + std::string(kind_of(*this)) + " where " + std::string(wanted) +
                                   " was expected; check the command, and what its key holds");
}

std::int64_t reply::integer() const {
  if (const auto* held = std::get_if<std::int64_t>(&held_)) return *held;
  refuse("an integer");
}

const std::string& reply::text() const& {
  if (const auto* held = std::get_if<std::string>(&held_)) return *held;
  refuse("text");
}

std::string reply::text() && {
  if (auto* held = std::get_if<std::string>(&held_)) return std::move(*held);
  refuse("text");
}

const reply::list& reply::elements() const& {
  if (const auto* held = std::get_if<list>(&held_)) return *held;
  refuse("a list");
}

reply::list reply::elements() && {
  if (auto* held = std::get_if<list>(&held_)) return std::move(*held);
  refuse("a list");
}

const error& reply::problem() const& {
  if (const auto* held = std::get_if<error>(&held_)) return *held;
  throw error(errc::malformed, "Redis answered with " + std::string(kind_of(*this)) + " where an error was expected");
}

error reply::problem() && { return std::as_const(*this).problem(); }

const reply& reply::checked() const& {
  if (const auto* held = std::get_if<error>(&held_)) throw error(*held);
  return *this;
}

reply reply::checked() && {
  std::as_const(*this).checked();
  return std::move(*this);
}

bool operator==(const reply& a, const reply& b) noexcept {
  if (a.held_.index() != b.held_.index()) return false;
  if (const auto* number = std::get_if<std::int64_t>(&a.held_)) return *number == std::get<std::int64_t>(b.held_);
  if (const auto* text = std::get_if<std::string>(&a.held_)) return *text == std::get<std::string>(b.held_);
  if (const auto* elements = std::get_if<reply::list>(&a.held_)) return *elements == std::get<reply::list>(b.held_);
  if (const auto* problem = std::get_if<error>(&a.held_)) return problem->message() == std::get<error>(b.held_).message();
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::redis
