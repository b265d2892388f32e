#include <holdfast/error.hpp>

#include <array>
#include <utility>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(errc code) noexcept {
  using namespace std::string_view_literals;
  static constexpr std::array names{"invalid_argument"sv, "unsupported_type"sv, "out_of_range"sv,
                                    "not_finite"sv,       "ill_formed_text"sv,  "duplicate"sv,
                                    "too_deep"sv,         "too_large"sv,        "malformed"sv,
                                    "tampered"sv,         "not_found"sv,        "unavailable"sv,
                                    "timeout"sv,          "grammar"sv,          "missing_object"sv,
                                    "permission"sv,       "internal"sv};
  static_assert(names.size() == static_cast<std::size_t>(errc::internal) + 1);
  const auto index = static_cast<std::size_t>(code);
  return index < names.size() ? names[index] : names.back();
}

struct error::state {
  errc code;
  std::string message;
  details context;
};

error::error(errc code, const std::string& message) : error(code, message, details{}) {}

error::error(errc code, const std::string& message, details context)
    : std::runtime_error(context.path.empty() ? message : context.path + ": " + message),
      state_(std::make_shared<const state>(state{code, message, std::move(context)})) {}

// Out of line so that the type information has one home and `catch` works across shared objects.
error::error(const error&) noexcept = default;
error& error::operator=(const error&) noexcept = default;
error::~error() = default;

errc error::code() const noexcept { return state_->code; }
bool error::transient() const noexcept { return state_->context.transient; }
bool error::in_doubt() const noexcept { return state_->context.in_doubt; }
const std::string& error::path() const noexcept { return state_->context.path; }
const std::string& error::message() const noexcept { return state_->message; }
const std::string& error::backend_code() const noexcept { return state_->context.backend_code; }
const std::optional<std::string>& error::not_null_column() const noexcept {
  return state_->context.not_null_column;
}

}  // namespace HOLDFAST_NAMESPACE
