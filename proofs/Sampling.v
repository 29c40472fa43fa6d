(* Exact sampling: a table compared with random words, and the digits of a geometric variable. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* What a decision says about the bits that were compared. *)
Lemma decide_below cells v j : decide cells v = Some j -> (j < size cells)%N ->
  (v < (nth (0, 0)%N cells j).1)%N.
Proof.
elim: cells j => [|[lo hi] cells IH] j //=.
case: ifP => [lt [<-] //|_]; case: ifP => // _.
by case e: (decide cells v) => [i|] //= [<-]; exact: IH.
Qed.

Lemma decide_above cells v j i : decide cells v = Some j -> (i < j)%N ->
  ((nth (0, 0)%N cells i).2 <= v)%N.
Proof.
elim: cells i j => [|[lo hi] cells IH] i j /=; first by case=> <-.
case: ifP => [_ [<-] //|_]; case: ifP => // lt.
case e: (decide cells v) => [k|] //= [<-]; case: i => [|i] /= ik; first by rewrite leqNgt lt.
exact: IH e _.
Qed.

Lemma decide_size cells v j : decide cells v = Some j -> (j <= size cells)%N.
Proof.
elim: cells j => [|[lo hi] cells IH] j /=; first by case=> <-.
case: ifP => [_ [<-] //|_]; case: ifP => // _.
by case e: (decide cells v) => [i|] //= [<-]; rewrite ltnS IH.
Qed.

Lemma decide_none cells v : decide cells v = None ->
  exists2 i, (i < size cells)%N &
    ((nth (0, 0)%N cells i).1 <= v < (nth (0, 0)%N cells i).2)%N.
Proof.
elim: cells => [|[lo hi] cells IH] //=.
case: ifP => // ge; case: ifP => [lt _|_]; first by exists 0%N => //=; rewrite leqNgt ge.
by case e: (decide cells v) => [i|] //= _; have [i si vi] := IH e; exists i.+1.
Qed.

Lemma card_sum (A : finType) (P : pred A) : #|[set V | P V]| = (\sum_(V : A) P V)%N.
Proof.
by rewrite -sum1_card big_mkcond; apply: eq_bigr => V _; rewrite inE; case: (P V).
Qed.

Section Table.
Variables (R : realFieldType) (m N D w : nat) (t : nat -> R) (cells : nat -> seq (nat * nat)).
Let upper j := if (j < m)%N then t j else 1.
Let lower j := if j is i.+1 then t i else 0.
Hypotheses (N0 : (0 < N)%N) (D0 : (0 < D)%N).
Hypothesis order : forall j, (j <= m)%N -> 0 <= lower j /\ lower j <= upper j /\ upper j <= 1.
Hypothesis sizes : forall d, size (cells d) = m.
Hypothesis enclose : forall d j, (j < m)%N -> let c := nth (0, 0)%N (cells d) j in
  [/\ c.1%:R <= (N ^ d)%:R * t j, (N ^ d)%:R * t j <= c.2%:R & (c.2 <= c.1 + w)%N].

Local Notation result V := (outcome N D cells V).

Lemma ohead_pmap (A : eqType) (f : A -> option nat) l j :
  ohead (pmap f l) = Some j -> exists2 a, a \in l & f a = Some j.
Proof.
elim: l => [|a l IH] //=; case e: (f a) => [i|] /=.
  by move=> [<-]; exists a; rewrite ?inE ?eqxx.
by move=> /IH [b bl fb]; exists b; rewrite ?inE ?bl ?orbT.
Qed.

(* Whatever is returned is right: all numbers in the cell of V are in the interval of j. *)
Lemma returned_inside V j : (V < N ^ D)%N -> result V = Some j ->
  [/\ (j <= m)%N, (N ^ D)%:R * lower j <= V%:R & V.+1%:R <= (N ^ D)%:R * upper j].
Proof.
move=> VD /ohead_pmap [d]; rewrite mem_iota add1n ltnS => /andP[_ dD] dec.
set v := (V %/ N ^ (D - d))%N in dec.
have Nd : (0 < N ^ (D - d))%N by rewrite expn_gt0 N0.
have split_power : (N ^ D = N ^ d * N ^ (D - d))%N by rewrite -expnD subnKC.
have vV : (v * N ^ (D - d) <= V)%N by rewrite leq_trunc_div.
have Vv : (V.+1 <= v.+1 * N ^ (D - d))%N by rewrite ltn_ceil.
have jm : (j <= m)%N by have := decide_size dec; rewrite sizes.
split=> //.
- case: j dec jm => [|i] dec jm; first by rewrite mulr0 ler0n.
  have [_ hi _] := enclose d jm; have := decide_above dec (ltnSn i); rewrite /= => le.
  apply: le_trans (_ : (v * N ^ (D - d))%:R <= _); last by rewrite ler_nat.
  rewrite split_power !natrM mulrAC; apply: ler_wpmul2r; first exact: ler0n.
  by apply: le_trans hi _; rewrite ler_nat.
- apply: le_trans (_ : _ <= (v.+1 * N ^ (D - d))%:R) _; first by rewrite ler_nat.
  rewrite split_power !natrM mulrAC; apply: ler_wpmul2r; first exact: ler0n.
  rewrite /upper; case: ltnP => [lt|_].
    have [lo _ _] := enclose d lt; apply: le_trans lo; rewrite ler_nat.
    by have := decide_below dec; rewrite sizes => /(_ lt).
  by rewrite mulr1 ler_nat /v ltn_divLR // -split_power.
Qed.

(* So many integers lie between A and B. *)
Lemma count_between n (S : {set 'I_n}) (A B : R) : A <= B ->
  (forall V, V \in S -> A <= (V : nat)%:R /\ (V : nat).+1%:R <= B) -> #|S|%:R <= B - A.
Proof.
move=> AB inside; have [->|[V0 V0S]] := set_0Vmem S; first by rewrite cards0 subr_ge0.
pose low := [arg min_(V < V0 in S) (V : nat)]%N; pose high := [arg max_(V > V0 in S) (V : nat)]%N.
have [lowS lowmin] : low \in S /\ forall V, V \in S -> (low <= V)%N.
  by rewrite /low; case: arg_minnP.
have [highS highmax] : high \in S /\ forall V, V \in S -> (V <= high)%N.
  by rewrite /high; case: arg_maxnP.
have card : (#|S| <= high.+1 - low)%N.
  rewrite cardE -(size_map (fun V : 'I_n => V : nat)) -(size_iota low (high.+1 - low)).
  apply: uniq_leq_size; first by rewrite map_inj_uniq ?enum_uniq //; exact: val_inj.
  move=> k /mapP[V]; rewrite mem_enum => VS ->; rewrite mem_iota lowmin //=.
  by rewrite subnKC ?ltnS ?highmax // ltnW // ltnS lowmin.
have [Al _] := inside _ lowS; have [_ hB] := inside _ highS.
apply: le_trans (_ : (high.+1 - low)%:R <= _); first by rewrite ler_nat.
by rewrite natrB ?ler_sub // ltnW // ltnS lowmin.
Qed.

Let returned j := #|[set V : 'I_(N ^ D) | result V == Some j]|.
Let open := #|[set V : 'I_(N ^ D) | result V == None]|.

Lemma returned_le j : (j <= m)%N -> (returned j)%:R <= (N ^ D)%:R * (upper j - lower j).
Proof.
move=> jm; have [_ [lu _]] := order jm; rewrite mulrBr; apply: count_between.
  by rewrite ler_wpmul2l ?ler0n.
by move=> V; rewrite inE => /eqP dec; have [_ lo hi] := returned_inside (ltn_ord V) dec.
Qed.

Lemma open_le : (open <= m * w)%N.
Proof.
pose c j := nth (0, 0)%N (cells D) j.
apply: (@leq_trans (\sum_(j < m) #|[set V : 'I_(N ^ D) | (c j).1 <= V < (c j).2]|)%N).
  rewrite /open card_sum (eq_bigr _ (fun j _ => card_sum _)) exchange_big /=.
  apply: leq_sum => V _; case: eqP => //= none.
  have : decide (cells D) V = None.
    case e: (decide (cells D) V) => [j|] //; move: none; rewrite /outcome.
    have : D \in iota 1 D by rewrite mem_iota D0 add1n ltnSn.
    elim: (iota 1 D) => [|d l IH] //=; rewrite inE; case: eqP => [<- _|_ /= Dl].
      by rewrite subnn expn0 divn1 e.
    by case: (decide (cells d) _) => //=; exact: IH.
  move=> /decide_none [i]; rewrite sizes => im ci; rewrite (bigD1 (Ordinal im)) //= ci.
  exact: leq_addr.
apply: leq_trans (_ : \sum_(j < m) w <= _)%N; last by rewrite sum_nat_const card_ord.
apply: leq_sum => j _; have [_ _ cw] := enclose D (ltn_ord j); rewrite -/(c j) in cw.
apply: leq_trans (_ : (c j).2 - (c j).1 <= _)%N; last by rewrite leq_subLR.
rewrite cardE -(size_map (fun V : 'I_(N ^ D) => V : nat)) -(size_iota (c j).1 ((c j).2 - (c j).1)).
apply: uniq_leq_size; first by rewrite map_inj_uniq ?enum_uniq //; exact: val_inj.
move=> k /mapP[V]; rewrite mem_enum inE => /andP[lo hi] ->; rewrite mem_iota lo /=.
by rewrite subnKC // ltnW // (leq_ltn_trans lo).
Qed.

Lemma all_returned : (\sum_(j < m.+1) returned j + open = N ^ D)%N.
Proof.
rewrite -[RHS]card_ord -sum1_card /open card_sum.
rewrite (eq_bigr _ (fun j _ => card_sum _)) exchange_big -big_split /=.
apply: eq_bigr => V _; case e: (result V) => [j|]; last by rewrite big1.
have [jm _ _] := returned_inside (ltn_ord V) e.
rewrite (bigD1 (Ordinal (_ : j < m.+1)%N)) //= eqxx big1 ?addn0 // => i ne.
by apply/eqP; rewrite eqb0; apply: contraNneq ne => -[ij]; apply/eqP/val_inj.
Qed.

Lemma widths : \sum_(j < m.+1) (upper j - lower j) = 1.
Proof.
suff telescope n : (n <= m)%N -> \sum_(j < n.+1) (upper j - lower j) = upper n.
  by rewrite telescope // /upper ltnn.
elim: n => [|n IH] nm; first by rewrite big_ord_recr big_ord0 /= add0r subr0.
by rewrite big_ord_recr /= (IH (ltnW nm)) {1}/upper nm addrC subrK.
Qed.

Theorem table j : (j <= m)%N ->
  (returned j)%:R <= (N ^ D)%:R * (upper j - lower j) /\
  (N ^ D)%:R * (upper j - lower j) - (m * w)%:R <= (returned j)%:R.
Proof.
move=> jm; split; first exact: returned_le.
have jm1 : (j < m.+1)%N by rewrite ltnS.
have /(congr1 (fun n => n%:R : R)) := all_returned.
rewrite natrD natr_sum (bigD1 (Ordinal jm1)) //= => total.
set rest := \sum_(i < m.+1 | _) _ in total.
have all : \sum_(i < m.+1) (N ^ D)%:R * (upper i - lower i) = (N ^ D)%:R.
  by rewrite -mulr_sumr widths mulr1.
rewrite (bigD1 (Ordinal jm1)) //= in all.
have others : (N ^ D)%:R * (upper j - lower j) + rest <= (N ^ D)%:R.
  by rewrite -[X in _ <= X]all ler_add2l ler_sum // => i _; rewrite returned_le // -ltnS.
have op : open%:R <= (m * w)%:R :> R by rewrite ler_nat open_le.
rewrite ler_subl_addr; move: others; rewrite -total addrAC ler_add2r => le.
by apply: le_trans le _; rewrite ler_add2l.
Qed.

End Table.

Section Digits.
Variable R : realFieldType.
Implicit Types (a : R).

Lemma power_lt1 a B : 0 <= a < 1 -> (0 < B)%N -> 0 <= a ^+ B < 1.
Proof. by move=> /andP[a0 a1] B0; rewrite exprn_ge0 // exprn_ilt1 // -lt0n. Qed.

Lemma digit_mass a B d : 0 <= a < 1 -> (0 < B)%N ->
  digit a B d = (1 - a) * a ^+ d / (1 - a ^+ B).
Proof.
move=> a01 B0; rewrite /digit /digit_upto; case: d => [|d].
  by rewrite subr0 expr1 expr0 mulr1.
rewrite -mulrBl; congr (_ / _).
by rewrite opprB addrCA addrAC subrr add0r [a ^+ d.+2]exprS mulrBl mul1r addrC.
Qed.

Theorem digits a bases g : 0 <= a < 1 -> all (leq 1) bases ->
  by_digits a bases g = geometric a g.
Proof.
elim: bases a g => [|B bases IH] a g a01 //= /andP[B0 ok].
have aB := power_lt1 a01 B0; rewrite IH // digit_mass // /geometric.
have ne : 1 - a ^+ B != 0 by rewrite subr_eq0 eq_sym lt_eqF //; case/andP: aB.
rewrite mulrA divfK // -mulrA -exprM -exprD; congr (_ * _ ^+ _).
by rewrite addnC mulnC -divn_eq.
Qed.

Theorem two_sided_law a bases z : 0 <= a < 1 -> all (leq 1) bases ->
  two_sided a bases z = (1 - a) / (1 + a) * a ^+ `|z|%N.
Proof.
move=> a01 ok; have /andP[a0 a1] := a01.
have pos : 1 + a != 0 by rewrite gt_eqF // ltr_paddr ?ltr01.
rewrite /two_sided; case: eqP => [->|/eqP z0].
  by rewrite absz0 expr0 mulr1 -{1}(divff pos) -mulrBl mulr_natl mulr2n opprD addrA addrK.
rewrite digits // /geometric; have : (0 < `|z|)%N by rewrite absz_gt0.
case: `|z|%N => // g _ /=.
have -> : 2%:R * a / (1 + a) / 2%:R = a / (1 + a).
  by rewrite mulrAC [2%:R * a]mulrC mulfK // pnatr_eq0.
by rewrite exprS !mulrA; congr (_ * _); rewrite mulrAC [a * _]mulrC mulrAC.
Qed.

End Digits.
