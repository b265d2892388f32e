#pragma once

/// \file
/// Typed calls: the part of a call that knows its value and its arguments. Not for user code.

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

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Hooks and codec of a point with values of type T.
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
  explicit typed_values(point_hooks<T> initial_hooks) : hooks(std::move(initial_hooks)) {}
};

/// A typed_values with its callable.
template <class R, class... A>
class typed_point : public typed_values<typename payload_of<R>::type> {
 public:
  [[nodiscard]] virtual R invoke(const call_context& context, A&&... args) const = 0;

 protected:
  using typed_values<typename payload_of<R>::type>::typed_values;
};

/// Implements encode and decode of `Base` with a codec.
template <class T, class Codec, class Base = typed_values<T>>
class coded_values : public Base {
 public:
  coded_values(Codec codec, point_hooks<T> initial_hooks)
      : Base(std::move(initial_hooks)), codec_(std::move(codec)) {}
  [[nodiscard]] std::string encode(const T& value) const override {
    return encode_payload(value, codec_);
  }
  [[nodiscard]] T decode(std::string_view bytes) const override {
    return decode_payload<T>(bytes, codec_);
  }

 private:
  [[no_unique_address]] const Codec codec_;
};

template <class F, class Codec, class R, class... A>
class bound_point final
    : public coded_values<typename payload_of<R>::type, Codec, typed_point<R, A...>> {
  using T = typename payload_of<R>::type;

 public:
  bound_point(F callable, Codec codec, point_hooks<T> initial_hooks)
      : coded_values<T, Codec, typed_point<R, A...>>(std::move(codec), std::move(initial_hooks)),
        callable_(std::move(callable)) {}

  [[nodiscard]] R invoke(const call_context& context, A&&... args) const override {
    if constexpr (signature<F>::takes_context) return callable_(context, static_cast<A&&>(args)...);
    else return callable_(static_cast<A&&>(args)...);
  }

 private:
  const F callable_;
};

/// A call without a callable: for the split phases, and for the result of a call on the executor.
template <class T>
class value_call : public call_base {
 public:
  explicit value_call(const typed_values<T>& values) : values_(values) {}

  std::optional<T> value{};

  void invoke(const call_context&) override {}
  [[nodiscard]] encoded_value encode(timestamp start) override {
    encoded_value result;
    if (!value) {
      result.kind = result_kind::absent;
      return result;
    }
    const auto& hooks = values_.hooks;
    if (hooks.result) result.kind = hooks.result(*value);
    if (result.kind == result_kind::ignore) return result;
    if (hooks.expiry) result.expire_on = hooks.expiry(*value, start);
    if (result.kind == result_kind::store) result.payload = values_.encode(*value);
    return result;
  }
  [[nodiscard]] std::string encode_for_followers() override {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the core asks has_value() before
    return values_.encode(*value);
  }
  void decode(std::string_view payload) override {
    value.reset();
    value.emplace(values_.decode(payload));
  }
  void make_empty() noexcept override { value.reset(); }
  [[nodiscard]] bool has_value() const noexcept override { return value.has_value(); }
  void enrich() override {
    if (value && values_.hooks.enrich) values_.hooks.enrich(*value, provenance);
  }
  void call_recovered_hook() override {
    if (values_.hooks.recovered) values_.hooks.recovered(value, provenance);
  }
  void set_default_value() override {
    if (values_.hooks.default_value) value.emplace(values_.hooks.default_value(provenance));
  }
  bool call_unserved_hook() override {
    if (!values_.hooks.unserved) return false;
    value = values_.hooks.unserved(provenance);
    return true;
  }
  void move_result(call_base& finished) noexcept override {
    value = std::move(static_cast<value_call&>(finished).value);
    provenance = finished.provenance;
  }
  [[nodiscard]] std::shared_ptr<call_base> copy_with_arguments() override { return nullptr; }

 protected:
  const typed_values<T>& values_;
};

/// A call that owns its callable and copies of its arguments.
template <class R, class... A>
class owned_call final : public value_call<typename payload_of<R>::type> {
  using base = value_call<typename payload_of<R>::type>;

 public:
  owned_call(std::shared_ptr<const typed_point<R, A...>> point,
             const std::remove_reference_t<A>&... args)
      : base(*point), point_(std::move(point)), args_(owned_copy<A>(args)...) {}

  void invoke(const call_context& context) override {
    if (has_retries(*point_->core)) {
      auto copy = args_;
      call(context, copy);
    } else {
      call(context, args_);
    }
  }

 private:
  void call(const call_context& context, std::tuple<owned_t<A>...>& args) {
    std::apply(
        [&](auto&... arg) { this->value = point_->invoke(context, as_parameter<A>(arg)...); },
        args);
  }

  const std::shared_ptr<const typed_point<R, A...>> point_;
  std::tuple<owned_t<A>...> args_;
};

/// A call on the thread of its caller: it refers to the arguments.
template <class R, class... A>
class stack_call final : public value_call<typename payload_of<R>::type> {
  using base = value_call<typename payload_of<R>::type>;

 public:
  stack_call(const std::shared_ptr<const typed_point<R, A...>>& point, A&&... args)
      : base(*point), point_(point), args_(static_cast<A&&>(args)...) {}

  void invoke(const call_context& context) override {
    if constexpr (ownable<A...> && sizeof...(A) > 0) {
      if (has_retries(*point_->core)) {
        auto copy = std::apply(
            [](auto&... arg) { return std::tuple<owned_t<A>...>(owned_copy<A>(arg)...); }, args_);
        std::apply(
            [&](auto&... arg) { this->value = point_->invoke(context, as_parameter<A>(arg)...); },
            copy);
        return;
      }
    }
    std::apply(
        [&](auto&... arg) { this->value = point_->invoke(context, static_cast<A&&>(arg)...); },
        args_);
  }
  [[nodiscard]] std::shared_ptr<call_base> copy_with_arguments() override {
    if constexpr (ownable<A...>) {
      return std::apply(
          [&](auto&... arg) -> std::shared_ptr<call_base> {
            return std::make_shared<owned_call<R, A...>>(point_, arg...);
          },
          args_);
    } else {
      return nullptr;
    }
  }

 private:
  const std::shared_ptr<const typed_point<R, A...>>& point_;
  std::tuple<A&&...> args_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
