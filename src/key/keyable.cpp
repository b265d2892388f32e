// Converts C++ values to run-time values.

#include <holdfast/key/keyable.hpp>

#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::key::detail {

namespace {

value value_of(const map_key& k) {
  switch (k.type) {
    case map_key::kind::null:
      return {};
    case map_key::kind::boolean:
      return k.truth;
    case map_key::kind::integer:
      return k.integer;
    case map_key::kind::unsigned_integer:
      return k.unsigned_integer;
    case map_key::kind::float32:
      return k.single;
    case map_key::kind::float64:
      return k.number;
    case map_key::kind::bytes: {
      const auto* begin = reinterpret_cast<const std::byte*>(k.text.data());
      return byte_string(begin, begin + k.text.size());
    }
    case map_key::kind::text:
    case map_key::kind::other:
      break;
  }
  return k.text;
}

/// A writer that builds a run-time value.
class value_builder final : public writer {
 public:
  [[nodiscard]] value result() { return std::move(result_); }

  void begin_arguments(std::size_t) override { unsupported("call"); }
  void begin_keywords(std::span<map_slot>) override { unsupported("call"); }
  void end_arguments() override {}

  void null() override { add({}); }
  void boolean(bool v) override { add(v); }
  void integer(std::int64_t v) override { add(v); }
  void unsigned_integer(std::uint64_t v) override { add(v); }
  void float32(float v) override { add(v); }
  void float64(double v) override { add(v); }
  void character(char32_t v) override { add(key::character{v}); }
  void text(std::string_view v) override { add(v); }
  void bytes(std::span<const std::byte> v) override { add(byte_string(v.begin(), v.end())); }
  void uuid(const key::uuid& v) override { add(v); }
  void decimal(std::string_view v) override { add(key::decimal{std::string(v)}); }
  void big_integer(std::string_view digits) override { add(key::big_integer{std::string(digits)}); }
  void instant(const key::instant& v) override { add(v); }
  void date(const key::date& v) override { add(v); }
  void time_of_day(const key::time_of_day& v) override { add(v); }
  void path(std::string_view v, key::path::flavour style) override {
    add(key::path{std::string(v), style});
  }
  void array(array_value::element type, std::span<const std::byte> v) override {
    add(array_value{type, {v.begin(), v.end()}});
  }

  void begin_list(std::size_t count) override { open(frame_kind::list, count); }
  void end_list() override {
    close([](open_container& c) { return value(list{std::move(c.items)}); });
  }
  void begin_set(std::size_t count) override { open(frame_kind::set, count); }
  void end_set() override {
    close([](open_container& c) { return value(set{std::move(c.items)}); });
  }
  void begin_map(std::span<map_slot> slots) override { open(frame_kind::map, slots.size()); }
  void entry(const map_slot& slot) override {
    set_entry_key(slot.key);
    open_.back().keys.push_back(value_of(slot.key));
  }
  void end_map() override {
    close([](open_container& c) {
      map result;
      result.items.reserve(c.items.size());
      for (std::size_t i = 0; i < c.items.size(); ++i)
        result.items.emplace_back(std::move(c.keys[i]), std::move(c.items[i]));
      return value(std::move(result));
    });
  }

  void object(const key::object& v) override { add(v); }
  void object_identity(const key::object_identity& v) override { add(v); }
  void begin_optional(bool) override { open(frame_kind::optional, 1); }
  void end_optional() override {
    close([](open_container& c) {
      return value(boxed_optional{
          c.items.empty() ? nullptr : std::make_shared<const value>(std::move(c.items.front()))});
    });
  }
  [[nodiscard]] bool enumerator_by_text(const key::enumeration&) override { return true; }

 protected:
  [[nodiscard]] std::string_view format_name() const noexcept override { return "a value"; }

 private:
  struct open_container {
    std::vector<value> items{};
    std::vector<value> keys{};
  };

  void add(value v) {
    count_value();
    store(std::move(v));
  }
  void store(value v) {
    if (open_.empty()) result_ = std::move(v);
    else open_.back().items.push_back(std::move(v));
  }
  void open(frame_kind kind, std::size_t count) {
    count_value();
    push(kind);
    open_.emplace_back().items.reserve(count);
  }
  template <class Make>
  void close(Make make) {
    value container = make(open_.back());
    open_.pop_back();
    pop();
    store(std::move(container));
  }

  std::vector<open_container> open_;
  value result_;
};

}  // namespace

value collect(argument_writer write) {
  value_builder builder;
  write(builder);
  return builder.result();
}

}  // namespace HOLDFAST_NAMESPACE::key::detail
