#pragma once

/// \file
/// Typed calls: the part of a call that knows its value and its arguments. User code does not call this.

#include <holdfast/codec.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/failover/hooks.hpp>
#include <holdfast/failover/signature.hpp>
#include <holdfast/version.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

/// What a point knows about its values.
template <class T>
class typed_values {
 public:
  typed_values(const typed_values&) = delete;
  typed_values& operator=(const typed_values&) = delete;
  virtual ~typed_values() = default;
  [[nodiscard]] virtual std::string encode(const T& value) const = 0;
  [[nodiscard]] virtual T decode(std::string_view bytes) const = 0;

  const point_hooks<T> hooks;
  std::shared_ptr<point_core> core{};

 protected:
  explicit typed_values(point_hooks<T> given) : hooks(std::move(given)) {}
};

/// A point, its callable included.
template <class R, class... A>
class typed_point : public typed_values<typename payload_of<R>::type> {
 public:
  [[nodiscard]] virtual R invoke(const call_context& context, A&&... args) const = 0;

 protected:
  using typed_values<typename payload_of<R>::type>::typed_values;
};

template <class F, class Codec, class R, class... A>
class bound_point final : public typed_point<R, A...> {
  using T = typename payload_of<R>::type;

 public:
  bound_point(F callable, Codec how, point_hooks<T> told)
      : typed_point<R, A...>(std::move(told)), callable_(std::move(callable)), codec_(std::move(how)) {}

  [[nodiscard]] R invoke(const call_context& context, A&&... args) const override {
    if constexpr (signature<F>::takes_context) return callable_(context, static_cast<A&&>(args)...);
    else return callable_(static_cast<A&&>(args)...);
  }
  [[nodiscard]] std::string encode(const T& value) const override { return encode_payload(value, codec_); }
  [[nodiscard]] T decode(std::string_view bytes) const override { return decode_payload<T>(bytes, codec_); }

 private:
  const F callable_;
  [[no_unique_address]] const Codec codec_;
};

/// A call whose upstream is called by somebody else: the split phases, and what a caller gets of an owned call.
template <class T>
class value_call : public call_base {
 public:
  explicit value_call(const typed_values<T>& how) : how_(how) {}

  std::optional<T> value{};

  void invoke(const call_context&) override {}
  [[nodiscard]] encoded encode(timestamp at) override {
    encoded made;
    if (!value) {
      made.kind = result_kind::absent;
      return made;
    }
    if (how_.hooks.result) made.kind = how_.hooks.result(*value);
    if (made.kind == result_kind::ignore) return made;
    if (how_.hooks.expiry) made.expire_on = how_.hooks.expiry(*value, at);
    if (made.kind == result_kind::store) made.payload = how_.encode(*value);
    return made;
  }
  void decode(std::string_view payload) override {
    value.reset();
    value.emplace(how_.decode(payload));
  }
  void make_empty() noexcept override { value.reset(); }
  [[nodiscard]] bool has_value() const noexcept override { return value.has_value(); }
  void enrich() override {
    if (value && how_.hooks.enrich) how_.hooks.enrich(*value, from);
  }
  void recovered() override {
    if (how_.hooks.recovered) how_.hooks.recovered(value, from);
  }
  void default_value() override {
    if (how_.hooks.default_value) value.emplace(how_.hooks.default_value(from));
  }
  bool unserved() override {
    if (!how_.hooks.unserved) return false;
    value = how_.hooks.unserved(from);
    return true;
  }
  void take(call_base& finished) noexcept override {
    value = std::move(static_cast<value_call&>(finished).value);
    from = finished.from;
  }
  [[nodiscard]] std::shared_ptr<call_base> own() override { return nullptr; }

 protected:
  const typed_values<T>& how_;
};

template <class R, class... A>
class owned_call final : public value_call<typename payload_of<R>::type> {
  using base = value_call<typename payload_of<R>::type>;

 public:
  owned_call(std::shared_ptr<const typed_point<R, A...>> point, const std::remove_reference_t<A>&... args)
      : base(*point), point_(std::move(point)), args_(owned_copy<A>(args)...) {}

  void invoke(const call_context& context) override {
    if (repeats(*point_->core)) {
      auto copy = args_;
      call(context, copy);
    } else {
      call(context, args_);
    }
  }

 private:
  void call(const call_context& context, std::tuple<owned_t<A>...>& args) {
    std::apply([&](auto&... each) { this->value = point_->invoke(context, given_back<A>(each)...); }, args);
  }

  const std::shared_ptr<const typed_point<R, A...>> point_;  // the call owns its callable, too
  std::tuple<owned_t<A>...> args_;
};

/// A call on its caller's thread: it only refers to the arguments.
template <class R, class... A>
class stack_call final : public value_call<typename payload_of<R>::type> {
  using base = value_call<typename payload_of<R>::type>;

 public:
  stack_call(const std::shared_ptr<const typed_point<R, A...>>& point, A&&... args)
      : base(*point), point_(point), args_(static_cast<A&&>(args)...) {}

  void invoke(const call_context& context) override {
    if constexpr (ownable<A...> && sizeof...(A) > 0) {
      if (repeats(*point_->core)) {
        auto copy = std::apply([](auto&... each) { return std::tuple<owned_t<A>...>(owned_copy<A>(each)...); }, args_);
        std::apply([&](auto&... each) { this->value = point_->invoke(context, given_back<A>(each)...); }, copy);
        return;
      }
    }
    std::apply([&](auto&... each) { this->value = point_->invoke(context, static_cast<A&&>(each)...); }, args_);
  }
  [[nodiscard]] std::shared_ptr<call_base> own() override {
    if constexpr (ownable<A...>) {
      return std::apply([&](auto&... each) -> std::shared_ptr<call_base> { return std::make_shared<owned_call<R, A...>>(point_, each...); },
                        args_);
    } else {
      return nullptr;
    }
  }

 private:
  const std::shared_ptr<const typed_point<R, A...>>& point_;
  std::tuple<A&&...> args_;
};

}  // namespace HOLDFAST_NAMESPACE::detail
