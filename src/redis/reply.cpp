#include <holdfast/redis.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

std::string_view type_of(const reply& answer) {
  if (answer.is_nil()) return "nil";
  if (answer.is_integer()) return "an integer";
  if (answer.is_text()) return "text";
  if (answer.is_list()) return "a list";
  return "an error";
}

}  // namespace

void reply::throw_not(std::string_view expected) const {
  if (const auto* problem = std::get_if<error>(&value_)) throw error(*problem);
  throw error(errc::malformed, "Redis answered with " + std::string(type_of(*this)) + " where " +
                                   std::string(expected) +
                                   " was expected; check the command, and the type of its key");
}

std::int64_t reply::integer() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  throw_not("an integer");
}

const std::string& reply::text() const& {
  if (const auto* value = std::get_if<std::string>(&value_)) return *value;
  throw_not("text");
}

std::string reply::text() && {
  if (auto* value = std::get_if<std::string>(&value_)) return std::move(*value);
  throw_not("text");
}

const reply::list& reply::elements() const& {
  if (const auto* value = std::get_if<list>(&value_)) return *value;
  throw_not("a list");
}

reply::list reply::elements() && {
  if (auto* value = std::get_if<list>(&value_)) return std::move(*value);
  throw_not("a list");
}

const error& reply::problem() const& {
  if (const auto* value = std::get_if<error>(&value_)) return *value;
  throw error(errc::malformed, "Redis answered with " + std::string(type_of(*this)) +
                                   " where an error was expected");
}

error reply::problem() && { return std::as_const(*this).problem(); }

const reply& reply::checked() const& {
  if (const auto* value = std::get_if<error>(&value_)) throw error(*value);
  return *this;
}

reply reply::checked() && {
  std::as_const(*this).checked();
  return std::move(*this);
}

bool operator==(const reply& a, const reply& b) noexcept {
  if (a.value_.index() != b.value_.index()) return false;
  if (const auto* number = std::get_if<std::int64_t>(&a.value_))
    return *number == std::get<std::int64_t>(b.value_);
  if (const auto* text = std::get_if<std::string>(&a.value_))
    return *text == std::get<std::string>(b.value_);
  if (const auto* elements = std::get_if<reply::list>(&a.value_))
    return *elements == std::get<reply::list>(b.value_);
  if (const auto* problem = std::get_if<error>(&a.value_))
    return problem->message() == std::get<error>(b.value_).message();
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::redis
