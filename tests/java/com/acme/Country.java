package com.acme;

import java.util.List;
import java.util.Objects;

/** A payload as an application has it: a bean that Jackson reads and writes without being told how. */
public class Country {
  private String code;
  private String name;
  private Double area;
  private List<String> languages;

  public String getCode() { return code; }
  public void setCode(String to) { code = to; }
  public String getName() { return name; }
  public void setName(String to) { name = to; }
  public Double getArea() { return area; }
  public void setArea(Double to) { area = to; }
  public List<String> getLanguages() { return languages; }
  public void setLanguages(List<String> to) { languages = to; }

  @Override
  public boolean equals(Object other) {
    return other instanceof Country c && Objects.equals(code, c.code) && Objects.equals(name, c.name) && Objects.equals(area, c.area)
        && Objects.equals(languages, c.languages);
  }

  @Override
  public int hashCode() { return Objects.hash(code, name, area, languages); }

  @Override
  public String toString() { return code + "|" + name + "|" + area + "|" + languages; }
}
